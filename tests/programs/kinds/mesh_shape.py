"""The shape of the mesh itself is fitted: the gradient goes to the mesh's own points."""
import numpy as np
import warp as wp


@wp.kernel
def distance(mesh: wp.uint64, p: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
    i = wp.tid()
    q = wp.mesh_query_point_sign_normal(mesh, p[i], 10.0)
    if q.result:
        c = wp.mesh_eval_position(mesh, q.face, q.u, q.v)
        d = wp.length(p[i] - c) - 0.2
        wp.atomic_add(loss, 0, d * d)


points = np.array([[0, 0, 1], [1, 0, 0], [-0.5, 0.8, 0], [-0.5, -0.8, 0]], dtype=np.float32)
faces = np.array([0, 1, 2, 0, 2, 3, 0, 3, 1, 1, 3, 2], dtype=np.int32)
mesh = wp.Mesh(points=wp.array(points, dtype=wp.vec3, requires_grad=True), indices=wp.array(faces, dtype=int))
p = wp.array([[0.6, 0.5, 0.7], [-0.9, 0.1, 0.8], [0.5, -0.6, 0.5]], dtype=wp.vec3)
for it in range(3):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(distance, 3, inputs=[mesh.id, p], outputs=[loss])
    tape.backward(loss)
    g = mesh.points.grad.numpy()
    mesh.points.assign(mesh.points.numpy() - 0.1 * g)
    mesh.refit()
    mesh.points.grad.zero_()
    print(it, loss.numpy()[0], np.abs(g).max())
