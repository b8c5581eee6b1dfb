"""Scratch fields by name; a field grows when somebody asks for more room."""
import warp as wp


class FieldPool:
    def __init__(self, device=None):
        self.device = device
        self._fields = {}

    def get(self, name: str, size: int) -> wp.array:
        field = self._fields.get(name)
        if field is None:
            field = wp.zeros(size, dtype=float, device=self.device, requires_grad=True)
            self._fields[name] = field
        elif field.size < size:
            field = self._grow(field, size)
            self._fields[name] = field
        return field

    def _grow(self, field: wp.array, size: int) -> wp.array:
        bigger = wp.zeros(size, dtype=float, device=self.device)
        wp.copy(bigger, field, count=field.size)
        return bigger

    def clear(self) -> None:
        for field in self._fields.values():
            field.zero_()
