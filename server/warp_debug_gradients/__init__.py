"""Find out why a program trained through NVIDIA Warp gets wrong gradients, and prove it with numbers."""

__version__ = "0.1.0"
