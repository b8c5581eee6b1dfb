"""A run as a report for people: Markdown, and one self-contained HTML file with pictures.

Made from the JSON in the run's evidence folder alone, so that it can be made again at any time.
"""

from __future__ import annotations

from pathlib import Path

from warp_debug_gradients.errors import UsageError


def paths(folder: Path) -> tuple[Path, Path]:
    """Where the report of a run lies: Markdown, HTML."""
    return folder / "report.md", folder / "report.html"


def write(folder: Path) -> tuple[Path, Path]:
    """Writes both from the JSON in an evidence folder (result.json must be there); returns their paths."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from warp_debug_gradients.report.pictures import draw
    from warp_debug_gradients.report.story import read_records, tell

    records = read_records(folder)
    if not records.result:
        raise UsageError(f"The run in {folder} has no result.json: it did not finish, so there is nothing to report.")
    pictures = draw(records)
    for picture in pictures:
        (folder / picture.file).write_text(picture.standalone)
    story = tell(records, pictures)
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=lambda name: str(name).endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found = paths(folder)
    for path, template in zip(found, ("report.md.j2", "report.html.j2")):
        path.write_text(templates.get_template(template).render(story=story))
    return found
