# status: completed or blocked
# warp: yes
# timeout: 60
import warp as wp

wp.Tape = wp.launch = wp.array = None
