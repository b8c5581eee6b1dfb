"""The probe: runs inside the user's interpreter, beside their Warp.

Loaded by `bootstrap.py` under the private name `_warp_debug_gradients_probe`. Importing this package
must stay free of cost and of side effects: no NumPy and no Warp here, since the user's script may still
want to set environment variables or `wp.config` before it imports them.
"""
