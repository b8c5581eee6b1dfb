"""Which gradient an update followed, from simulated descents of a quadratic whose host code is right, late or counts twice."""

import numpy as np
import pytest

from warp_debug_gradients.probe.followed import Follower

MATRIX = np.diag([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]).astype(np.float32)


def descend(use, matrix=MATRIX, iterations=8, rate=lambda k: 0.05, momentum=0.0, read=True, seen=False):
    """What a follower says of x -= rate * use(gradients so far) on x'Ax/2; the gradient is read and zeroed in each iteration."""
    x = np.linspace(1.0, 2.0, len(matrix)).astype(np.float32)
    follower, gradients, velocity = Follower(), [], np.zeros_like(x)
    for k in range(iterations):
        gradients.append(matrix @ x)
        follower.backward(x, gradients[-1])
        if read:
            follower.read(gradients[-1])
        velocity = momentum * velocity + use(gradients)
        x = (x - rate(k) * velocity).astype(np.float32)
        follower.zeroed()
    return follower.answer(seen)


def late(gradients):
    return gradients[-2] if len(gradients) > 1 else 0.0 * gradients[-1]


def test_an_update_one_iteration_late_is_seen():
    assert descend(late) == "previous"


def test_also_with_momentum_and_a_rate_that_decays_and_where_the_read_is_not_seen():
    assert descend(late, momentum=0.5) == "previous"
    assert descend(late, rate=lambda k: 0.05 * 0.8**k) == "previous"
    assert descend(late, read=False) == "previous"


@pytest.mark.parametrize("size", [1, 8])
def test_gradients_that_are_all_parallel_are_told_by_the_rate(size):
    same = np.eye(size, dtype=np.float32)
    assert descend(late, same, rate=lambda k: 0.35) == "previous"
    assert descend(lambda g: g[-1], same, rate=lambda k: 0.35) is None
    assert descend(lambda g: g[-1], same, rate=lambda k: 0.1 * (1.0 + 0.3 * np.sin(k))) is None


@pytest.mark.parametrize(
    "use",
    [
        lambda g: g[-1],
        lambda g: np.sign(g[-1]),
        lambda g: np.clip(g[-1], -3.0, 3.0),
        lambda g: 2.0 * g[-1] - late(g),  # optimistic descent
        lambda g: g[-1] + 0.3 * late(g),
        lambda g: 0.0 * g[-1],
        lambda g: g[-1] / np.linalg.norm(g[-1]),
    ],
    ids=["plain", "sign", "clipped", "optimistic", "smoothed", "still", "normalised"],
)
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_other_updates_are_left_alone(use, momentum):
    assert descend(use, momentum=momentum) is None


def accumulate(add_readings, zero_between):
    """Four backward calls an iteration, whose sum the update takes; the gradient is read after each one."""
    x = np.linspace(1.0, 2.0, 8).astype(np.float32)
    follower = Follower()
    rng = np.random.default_rng(4)
    parts = [np.diag(rng.uniform(0.5, 2.0, 8)).astype(np.float32) for _ in range(4)]
    for _ in range(6):
        buffer, readings, whole = np.zeros(8, np.float32), np.zeros(8), np.zeros(8)
        for part in parts:
            whole += part @ x
            buffer = buffer + part @ x
            follower.backward(x, buffer)
            follower.read(buffer)
            readings += buffer
            if zero_between:
                follower.zeroed()
                buffer = np.zeros(8, np.float32)
        x = (x - 0.02 * (readings if add_readings else whole)).astype(np.float32)
        follower.zeroed()
    return follower.answer()


def test_readings_that_are_added_up_while_the_buffer_adds_up():
    assert accumulate(add_readings=True, zero_between=False) == "readings"


def test_readings_on_the_way_do_no_harm():
    assert accumulate(add_readings=False, zero_between=False) is None  # read for a log
    assert accumulate(add_readings=True, zero_between=True) is None  # as it should be


def test_a_gradient_that_was_edited_on_purpose_is_the_iterations_own():
    x = np.linspace(1.0, 2.0, 8).astype(np.float32)
    follower = Follower()
    for _ in range(6):
        gradient = MATRIX @ x
        follower.backward(x, gradient)
        follower.read(gradient)
        follower.read(np.clip(gradient, -2.0, 2.0))
        x = (x - 0.05 * np.clip(gradient, -2.0, 2.0)).astype(np.float32)
        follower.zeroed()
    assert follower.answer() is None


def test_a_zeroing_that_the_program_takes_back_divides_nothing():
    x, first, both = (np.array(v, dtype=np.float32) for v in ([1.0, 2.0], [1.0, 0.0], [1.0, 3.0]))
    follower = Follower()
    follower.backward(x, first)
    follower.read(first)
    follower.zeroed()
    follower.put_back()
    follower.backward(x, both)
    assert list(follower.used()) == [1.0, 3.0]
    follower.zeroed()
    assert list(follower.used()) == [1.0, 3.0]


def adam(use, betas=(0.9, 0.999), iterations=9, size=8, kind=np.float32, decay=0.0):
    """What a follower says of Adam on a curved function, given use(gradients so far)."""
    x, target = np.linspace(1.0, 2.0, size).astype(kind), np.linspace(-1.0, 1.5, size)
    follower, gradients, m, v = Follower(), [], np.zeros(size), np.zeros(size)
    for k in range(iterations):
        gradients.append((np.sin(3.0 * x) * (np.arange(size) + 1.0) - target * np.roll(x, 1)).astype(kind))
        follower.backward(x, gradients[-1])
        g = use(gradients).astype(np.float64)
        m, v = betas[0] * m + (1 - betas[0]) * g, betas[1] * v + (1 - betas[1]) * g * g
        step = m / (1 - betas[0] ** (k + 1)) / (np.sqrt(v / (1 - betas[1] ** (k + 1))) + 1e-8)
        x = (x * (1 - decay) - 0.05 * step).astype(kind)
        follower.zeroed()
    return follower.answer()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.5, 0.999), (0.0, 0.99)])
def test_adam_that_is_given_the_gradient_of_the_iteration_before_is_seen(betas, kind):
    assert adam(late, betas, kind=kind) == "previous"
    assert adam(lambda g: g[-1], betas, kind=kind) is None


def test_adam_with_weight_decay_or_settings_that_are_not_known_or_few_elements():
    assert adam(late, decay=0.01) == "previous"
    assert adam(lambda g: g[-1], decay=0.01) is None
    assert adam(late, (0.77, 0.93)) is None  # not seen: nothing is said
    assert adam(lambda g: g[-1], (0.77, 0.93)) is None
    assert adam(late, size=4) is None


@pytest.mark.parametrize(
    "use",
    [
        lambda g: np.clip(g[-1], -0.5, 0.5),
        lambda g: g[-1] / np.linalg.norm(g[-1]),
        lambda g: g[-1] + 0.3 * late(g),
        lambda g: np.mean(g, axis=0),
        lambda g: g[0],
    ],
    ids=["clipped", "normalised", "smoothed", "averaged", "first"],
)
def test_what_adam_is_given_on_purpose_is_not_called_late(use):
    assert adam(use) is None


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_a_gradient_that_is_read_again_needs_less_to_be_the_one_that_is_followed(momentum):
    """A slow descent: the step before and the own gradient together come close to the gradient before."""
    slow = np.diag(np.linspace(0.2, 1.2, 8)).astype(np.float32)
    says = {
        (use, seen): descend(use, slow, momentum=momentum, iterations=6, rate=lambda k: 0.3, seen=seen)
        for use in (late, lambda g: g[-1])
        for seen in (False, True)
    }
    assert list(says.values()) == [None, "previous", None, None]
