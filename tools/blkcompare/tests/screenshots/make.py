# SPDX-License-Identifier: GPL-2.0
"""Takes the screenshots beside this file: wide and narrow, light and dark.

    python tests/screenshots/make.py [PAGE...]

Needs chromium and Pillow.  The reports are of simulated runs.
"""

import io
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from blkcompare import report, simulate
from blkcompare.simulate import Scenario

HERE = Path(__file__).parent
WIDTHS = (1280, 400)
SCHEMES = {"dark": 0, "light": 1}


def shoot(page: Path, width: int, height: int, scheme: str, out: Path) -> None:
    with tempfile.TemporaryDirectory() as directory:
        picture = Path(directory) / "shot.png"
        subprocess.run(
            [
                "chromium",
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
                f"--window-size={width},{height}",
                f"--screenshot={picture}",
                page.as_uri(),
            ],
            check=True,
            capture_output=True,
        )
        data = io.BytesIO()
        image = Image.open(picture).convert("RGB")
        image.quantize(128, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
            data, "PNG", optimize=True
        )
    out.write_bytes(data.getvalue())
    print(f"{out.name}: {len(data.getvalue()) // 1024} KiB")


def excerpt(page: Path, element: str, out: Path) -> Path:
    """Copies a page with one cell only, opened."""
    text = page.read_text()
    text = text.replace(f'<details id="{element}">', f'<details id="{element}" open>')
    hide = f"body > :not(#{element}) {{ display: none !important }}</style>"
    out.write_text(text.replace("</style>", hide, 1))
    return out


def main() -> None:
    cells = simulate.matrix()
    names = list(cells)
    modal = Scenario(
        cells=1, boots=6, common=0.005, mode_gap=0.2, mode_share_a=0.4, mode_share_b=0.5
    )
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        simulate.write_run(
            path / "one.db",
            Scenario(cells=24, boots=6, boot_own=0.004),
            cells=cells,
            name="simulated run",
            effects={names[1]: 0.03, names[5]: -0.02, names[9]: -0.012},
            modal={names[3]: modal},
            skip=names[-1:],
        )
        one = report.write_report([path / "one.db"], path / "one").html
        for index in range(5):
            simulate.write_run(
                path / "several.db",
                Scenario(cells=24, boots=5, boot_own=0.004, effect=0.005 * index - 0.01,
                         control_effect=0.03 * (index == 2)),
                cells=cells,
                name=f"release {index + 1}",
                machine={"id": str(index % 2), "name": ("server", "laptop")[index % 2]},
                started=1.7e9 + 3e6 * index,
                seed=index,
            )  # fmt: skip
        several = report.write_report([path / "several.db"], path / "several").html
        text = several.read_text()
        start = text.index('<h2 id="runs">')
        (path / "trend.html").write_text(
            text[: text.index("<body>") + 6] + text[start : text.index('<details class="run"')]
        )
        pages = {
            "report": (one, (2500, 3600)),
            "latency": (excerpt(one, "r1beside", path / "latency.html"), (1000, 1600)),
            "cell": (excerpt(one, "r1c4", path / "cell.html"), (980, 2450)),
            "trend": (path / "trend.html", (1450, 1750)),
        }
        for name in sys.argv[1:] or pages:
            page, heights = pages[name]
            for width, height in zip(WIDTHS, heights, strict=True):
                for scheme in SCHEMES:
                    shoot(page, width, height, scheme, HERE / f"{name}-{width}-{scheme}.png")


if __name__ == "__main__":
    main()
