"""Throw a ball at a mark. Written for a module that Warp no longer has."""

import warp as wp
import warp.sim

builder = wp.sim.ModelBuilder()
builder.add_particle(pos=wp.vec3(0.0, 1.0, 0.0), vel=wp.vec3(5.0, 5.0, 0.0), mass=1.0)
model = builder.finalize(requires_grad=True)
print(model.particle_count)
