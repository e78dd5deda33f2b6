#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Makes a small Debian archive, or a server's directory of kernel tarballs, out of a stock tree, in the build root.

A package set is written SUITE:VERSION[,source-only][,image-only][,rustc=TEXT][,gcc=RELEASE][,edit=FILE]. It is
linux-source with the files of the stock tree that rnull replaces or patches, of which FILE has a line more, and a
kernel image for amd64. By default that was built by the compilers of the build root.
"""

import argparse
import email.utils
import hashlib
import io
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import time

import openpgp

STOCK = pathlib.Path("/src")
HASHES = pathlib.Path("/rnull/scripts/overlay.d")
SUITES = ["trixie-backports", "forky", "sid"]


def release_of(version):
    """The upstream release, as numbers: [7, 3, 99] for 7.3.99-1~bpo13+1."""
    return [int(number) for number in re.match(r"[0-9.]+", version)[0].rstrip(".").split(".")]


def tarball(path, version, prefix, edit):
    """A tree of that version that has what the overlay looks at."""
    numbers = (release_of(version) + [0])[:3]
    lists = HASHES.glob("*.hashes")
    names = {line.split()[1] for text in lists for line in text.read_text().splitlines() if not line.startswith("#")}
    with tarfile.open(path, "w:xz", preset=0) as tar:
        for name in sorted(names | {"Makefile", "rust/kernel/lib.rs"}):
            data = (STOCK / name).read_bytes()
            if name == "Makefile":
                for field, number in zip(("VERSION", "PATCHLEVEL", "SUBLEVEL"), numbers):
                    data = re.sub(rf"(?m)^{field} = .*", f"{field} = {number}", data.decode()).encode()
            if name == edit:
                data += b"// A line of an update.\n"
            entry = tarfile.TarInfo(f"{prefix}/{name}")
            entry.size, entry.mode = len(data), 0o644
            tar.addfile(entry, io.BytesIO(data))


def compilers(options):
    """The lines of a kernel's configuration that name the compilers it was built by."""
    rustc = options.get("rustc") or subprocess.check_output(["rustc", "--version"], text=True).strip()
    command = ["x86_64-linux-gnu-gcc-14", "-dumpfullversion"]
    gcc = options.get("gcc") or subprocess.check_output(command, text=True).strip()
    return (
        f'CONFIG_RUSTC_VERSION_TEXT="{rustc}"\n'
        f'CONFIG_CC_VERSION_TEXT="x86_64-linux-gnu-gcc-14 (Debian {gcc}-99) {gcc}"\n'
    ).encode()


class Archive:
    def __init__(self, top):
        self.top = pathlib.Path(top)
        self.packages = {suite: [] for suite in SUITES}

    def package(self, suite, name, version, architecture, files):
        """Builds a .deb, and notes it for the index of the suite."""
        pool = self.top / "pool"
        pool.mkdir(parents=True, exist_ok=True)
        deb = pool / f"{name}_{version}_{architecture}.deb"
        control = (
            f"Package: {name}\nVersion: {version}\nArchitecture: {architecture}\n"
            "Maintainer: The test <test@example.org>\nDescription: made for a test\n"
        )
        with tempfile.TemporaryDirectory() as root:
            for path, data in {"DEBIAN/control": control.encode(), **files}.items():
                file = pathlib.Path(root, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
            pathlib.Path(root).chmod(0o755)
            subprocess.run(
                ["dpkg-deb", "-Znone", "--root-owner-group", "--build", root, deb],
                check=True,
                stdout=subprocess.DEVNULL,
            )
        data = deb.read_bytes()
        self.packages[suite].append(
            f"{control}Filename: pool/{deb.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"
        )

    def add(self, text):
        """Adds a package set, see the head of this file."""
        suite, _, rest = text.partition(":")
        version, *options = rest.split(",")
        options = dict(option.partition("=")[::2] for option in options)
        numbers = release_of(version)
        series = ".".join(map(str, numbers[:2]))
        release = ".".join(map(str, numbers)) + "+deb13-amd64"
        if "image-only" not in options:
            with tempfile.NamedTemporaryFile() as file:
                tarball(file.name, version, f"linux-source-{series}", options.get("edit"))
                contents = pathlib.Path(file.name).read_bytes()
            name = f"linux-source-{series}"
            self.package(suite, name, version, "all", {f"usr/src/{name}.tar.xz": contents})
        if "source-only" in options:
            return
        modules, config = f"usr/lib/modules/{release}", compilers(options)
        headers = f"usr/src/linux-headers-{release}"
        indices = ("modules.order", "modules.builtin", "modules.builtin.modinfo")
        for kind, files in {
            "binary": {f"{modules}/vmlinuz": b"a kernel of " + version.encode()},
            "modules": {f"{modules}/kernel/empty": b""},
            "base": {f"{modules}/config": config} | {f"{modules}/{name}": b"" for name in indices},
            "headers": {f"{headers}/.config": config, f"{headers}/Module.symvers": b""},
        }.items():
            self.package(suite, f"linux-{kind}-{release}", version, "amd64", files)
        # Images of other flavours are never to be chosen.
        cloud = release.replace("-amd64", "-cloud-amd64")
        self.package(suite, f"linux-binary-{cloud}", version, "amd64", {})

    def publish(self, key):
        """Writes the indices, which are out of date already, signed if there is a key."""
        for suite, packages in self.packages.items():
            directory = self.top / "dists" / suite
            index = directory / "main/binary-amd64/Packages"
            index.parent.mkdir(parents=True)
            index.write_text("\n".join(packages))
            data = index.read_bytes()
            release = (
                f"Origin: Debian\nSuite: {suite}\nCodename: {suite}\n"
                f"Date: {email.utils.formatdate(time.time() - 2 * 86400, usegmt=True)}\n"
                f"Valid-Until: {email.utils.formatdate(time.time() - 86400, usegmt=True)}\n"
                "Architectures: amd64\nComponents: main\nSHA256:\n"
                f" {hashlib.sha256(data).hexdigest()} {len(data)} main/binary-amd64/Packages\n"
            )
            (directory / "Release").write_text(release)
            if key:
                (directory / "Release.gpg").write_text(key.sign(release.encode()))


def make_archive(arguments):
    top = pathlib.Path(arguments.directory, "debian")
    shutil.rmtree(top, ignore_errors=True)
    archive = Archive(top)
    for text in arguments.what:
        archive.add(text)
    archive.publish(openpgp.Key(arguments.directory, arguments.key) if arguments.key else None)


def make_kernel_org(arguments):
    """Tarballs of those versions, with a sha256sums.asc that carries no real signature."""
    top = pathlib.Path(arguments.directory, "kernel.org")
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir()
    sums = ["-----BEGIN PGP SIGNED MESSAGE-----", "Hash: SHA256", ""]
    for text in arguments.what:
        version, _, edit = text.partition(",edit=")
        file = top / f"linux-{version}.tar.xz"
        tarball(file, version, f"linux-{version}", edit)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        sums += [f"{digest}  {file.name}", f"{'0' * 64}  patch-{version}.xz", f"{'0' * 64}  {file.name[:-2]}gz"]
    (top / "sha256sums.asc").write_text("\n".join(sums + ["-----BEGIN PGP SIGNATURE-----", ""]))


def make_keyring(arguments):
    key = openpgp.Key(arguments.directory, arguments.key)
    pathlib.Path(arguments.directory, "keyring.gpg").write_bytes(key.public())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--key", help="the name of the key that signs, made if need be")
    parser.add_argument("directory", help="what is served; keys are kept there as well")
    parser.add_argument("kind", choices=["archive", "kernel.org", "keyring"])
    parser.add_argument("what", nargs="*", help="package sets, or versions")
    arguments = parser.parse_args()
    {"archive": make_archive, "kernel.org": make_kernel_org, "keyring": make_keyring}[arguments.kind](arguments)


main()
