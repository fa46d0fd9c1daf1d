"""Empty libraries in place of those that CNTK 2.7's image reader was linked with and that distributions no longer have.

The reader decodes uncompressed bitmaps by itself, but is not loaded at all while libjpeg 8, libpng 1.2 and others cannot be found.  Here
they are made of functions that do nothing, which needs a C compiler; bitmaps are then read as CNTK reads them.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

LIBRARIES = {
    "libjpeg.so.8": ("jpeg_", "LIBJPEG_8.0"),
    "libpng12.so.0": ("png_", "PNG12_0"),
    "libtiff.so.5": ("TIFF", "LIBTIFF_4.0"),
    "libjasper.so.1": ("jas_", ""),
}
"""What the names of a library's functions begin with, and their version."""


def preloaded(cntk: str, folder: Path) -> str:
    """Make in *folder* the libraries that the image reader of a CNTK lacks; returns what LD_PRELOAD is to say."""
    found = output([cntk, "-c", "import cntk, os; print(os.path.dirname(cntk.__file__))"], folder).split()[-1]
    decoder = next(Path(found, "libs").glob("libopencv_imgcodecs.so*"))
    missing = re.findall(r"(\S+) => not found", output(["ldd", str(decoder)], folder))
    functions = re.findall(r" U (\w+)", output(["nm", "-D", str(decoder)], folder))
    for library in set(missing) & set(LIBRARIES):
        prefix, version = LIBRARIES[library]
        make(folder / library, [name for name in functions if name.startswith(prefix)], version)
    return " ".join(str(folder / library) for library in LIBRARIES if library in missing)


def make(library: Path, functions: list[str], version: str) -> None:
    """Compile a library of functions that do nothing and return 0."""
    source, script = library.with_suffix(".c"), library.with_suffix(".map")
    source.write_text("".join(f"void *{name}(void) {{ return 0; }}\n" for name in functions))
    script.write_text(f"{version} {{ global: *; }};\n")
    versions = [f"-Wl,--version-script={script}"] if version else []
    subprocess.run(["cc", "-w", "-shared", "-fPIC", "-o", library, source, f"-Wl,-soname,{library.name}", *versions], check=True)


def output(command: list[str], folder: Path) -> str:
    """What a command prints, run where nothing shadows the modules of Python."""
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
