"""Device arrays shared by all mini-batches."""
import numpy as np
import warp as wp

import bands


class Workspace:
    def __init__(self, points, batch, fractions, counts):
        species, centre, strength = (np.array(c) for c in zip(*bands.BANDS))
        self.bands = [
            wp.array(species, dtype=int),
            wp.array(centre, dtype=float),
            wp.array(strength, dtype=float),
        ]
        self.axis = wp.array(bands.axis(points), dtype=float)
        self.fraction = wp.array(fractions, dtype=float)
        self.counts = wp.array(counts, dtype=float)
        self.batch = batch
        self.points = points
        self.library = wp.zeros((3, points), dtype=float, requires_grad=True)
        self.spectrum = wp.zeros((batch, points), dtype=float, requires_grad=True)
        self.chi2 = wp.zeros(1, dtype=float, requires_grad=True)

    def prepare(self):
        self.library.zero_()
        self.chi2.zero_()

    def forward(self, instrument, first, scale):
        dims = (self.batch, self.points)
        wp.launch(
            bands.add_bands,
            (len(bands.BANDS), self.points),
            inputs=[*self.bands, instrument, self.axis],
            outputs=[self.library],
        )
        wp.launch(bands.mix, dims, inputs=[self.library, self.fraction, first, instrument], outputs=[self.spectrum])
        wp.launch(bands.chi_square, dims, inputs=[self.spectrum, self.counts, first, scale], outputs=[self.chi2])
