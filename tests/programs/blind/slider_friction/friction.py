"""Stribeck friction of a linear guide, with a hand-written adjoint: the automatic one is slow to compile in the big model."""
import warp as wp


@wp.struct
class Guide:
    mass: float
    spring: float
    rest: float


@wp.func
def stribeck(v: float, coulomb: float, stick: float, speed: float):
    """Friction force for sliding velocity v, smooth through zero."""
    r = v / speed
    peak = (stick - coulomb) * wp.exp(-r * r)
    return (coulomb + peak) * wp.tanh(8.0 * v)


@wp.func_grad(stribeck)
def adj_stribeck(v: float, coulomb: float, stick: float, speed: float, adj_ret: float):
    r = v / speed
    e = wp.exp(-r * r)
    s = wp.tanh(8.0 * v)
    force = coulomb + (stick - coulomb) * e
    wp.adjoint[v] += adj_ret * force * 8.0 * (1.0 - s * s)
    wp.adjoint[coulomb] += adj_ret * (1.0 - e) * s
    wp.adjoint[stick] += adj_ret * e * s
    wp.adjoint[speed] += adj_ret * (stick - coulomb) * e * 2.0 * r * r / speed * s
