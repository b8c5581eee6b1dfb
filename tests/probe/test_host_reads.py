"""Numbers handed to launches that follow the parameter."""

import math

from warp_debug_gradients.probe.host_reads import that_follow


def test_numbers_that_move_with_the_parameter():
    plus = {3: {"level": (2.0,), "dt": (0.1,)}, 4: {"dt": (0.1,)}, 7: {"axis": (1.0, 0.5, 0.0)}}
    minus = {3: {"level": (1.9,), "dt": (0.1,)}, 4: {"dt": (0.1,)}, 7: {"axis": (1.0, 0.2, 0.1)}}
    assert that_follow(plus, minus) == {
        3: [{"argument": "level", "plus": 2.0, "minus": 1.9}],
        7: [{"argument": "axis", "plus": 0.5, "minus": 0.2}],
    }


def test_what_is_not_finite_or_not_there_tells_nothing():
    assert that_follow({1: {"a": (math.nan,)}, 2: {"b": (1.0,)}}, {1: {"a": (1.0,)}}) == {}
    assert that_follow({1: {"a": (math.inf,)}}, {1: {"a": (math.inf,)}}) == {}
