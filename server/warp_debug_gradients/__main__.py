"""`python -m warp_debug_gradients`: the same as the command `warp-debug-gradients`."""

from warp_debug_gradients.cli import main

if __name__ == "__main__":
    main()
