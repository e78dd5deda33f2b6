# SPDX-License-Identifier: GPL-2.0
"""A scratch repository in which the patches are commits."""
import subprocess

import manifest
import tree

# For commits that are not mailed.
NOBODY = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
          for what, value in (("NAME", "Test"), ("EMAIL", "test@example.org"))}


class States:
    """A repository with the state after each patch as a commit, on the branch `work`."""

    def __init__(self, directory):
        self.directory = directory

    def git(self, *arguments, **options):
        return subprocess.run(["git", *map(str, arguments)], cwd=self.directory, check=True,
                              text=True, **options)

    def read(self, *arguments):
        return self.git(*arguments, stdout=subprocess.PIPE).stdout.rstrip("\n")

    def commits(self):
        """The commits, in the order of the patches."""
        return self.read("rev-list", "--reverse", "base..work").splitlines()

    def paths(self):
        """The files that any patch changes."""
        return {*self.read("log", "--format=", "--name-only", "--no-renames", "base..work")
                .splitlines()}

    def blobs(self, commit):
        """path -> what git names the content of the file by."""
        lines = [line.split() for line in self.read("ls-tree", "-r", commit).splitlines()]
        return {path: name for _, _, name, path in lines}

    def text(self, commit, path):
        """The text of a file in a commit, or None."""
        found = subprocess.run(["git", "show", f"{commit}:{path}"], cwd=self.directory, text=True,
                               capture_output=True, check=False)
        return found.stdout if found.returncode == 0 else None


class Repository(States):
    """A scratch repository that has the files of the base that the series change."""

    def __init__(self, directory, cut, source, base):
        super().__init__(directory)
        self.cut, self.base = cut, base
        directory.mkdir(exist_ok=True)
        self.git("init", "-q", "-b", "base")
        mailed = [patch.mail for patch in cut.patches if patch.mail]
        base = dict(cut.before)
        for name in mailed:
            for line in (tree.TOP / name).read_text().splitlines():
                if line.startswith("--- a/"):
                    base[line[6:]] = (source / line[6:]).read_text()
        self.commit("base", [(base, "base\n")])

    def commit(self, branch, commits, parent=None):
        """Makes commits on a branch, each of (files, message); a file is None if it is deleted."""
        def data(text):
            text = text.encode()
            return b"data %d\n%s\n" % (len(text), text)

        person = self.read("var", "GIT_COMMITTER_IDENT")
        stream = []
        for files, message in commits:
            stream += [f"commit refs/heads/{branch}\ncommitter {person}\n".encode(), data(message)]
            if parent:
                stream.append(f"from {parent}\n".encode())
                parent = None
            for path, text in sorted(files.items()):
                if text is None:
                    stream.append(f"D {path}\n".encode())
                else:
                    stream.append(f"M 100644 inline {path}\n".encode() + data(text))
        subprocess.run(["git", "fast-import", "--quiet", "--force"], cwd=self.directory, check=True,
                       input=b"".join(stream))

    def apply(self, files, branch, start):
        """Applies mails to `start` as a branch; returns its head."""
        self.git("checkout", "-q", "-f", "-B", branch, start)
        if files:
            self.git("am", "-q", "--keep-non-patch", *files)
        return self.read("rev-parse", "HEAD")

    def merge(self, mail, start):
        """Commits a patch that was made for the base; returns the commit."""
        made = self.apply([mail], "mailed", "base")
        self.git("checkout", "-q", "-f", "-B", "work", start)
        try:
            self.git("cherry-pick", made, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        except subprocess.CalledProcessError:
            raise manifest.Error(f"{mail.name} does not fit on the patches before it") from None
        return self.read("rev-parse", "HEAD")

    def build(self):
        """Commits all patches; returns the name of the commit before and after each series."""
        head, number, ends = self.read("rev-parse", "base"), 0, []
        person = self.read("var", "GIT_COMMITTER_IDENT").rpartition(">")[0]
        signed = f"Signed-off-by: {person}>"
        for series in self.cut.series:
            start, commits = head, []
            for patch in series.patches:
                number += 1
                if patch.mail:
                    head, commits = self.flush(commits, head), []
                    head = self.merge(tree.TOP / patch.mail, head)
                    continue
                changes = self.cut.changes(number)
                if not changes:
                    raise manifest.Error(f"{patch.where}: nothing belongs to this patch")
                commits.append((changes, f"{patch.subject}\n\n{patch.body}\n\n{signed}\n"))
            head = self.flush(commits, head)
            ends.append((series, start, head))
        return ends

    def flush(self, commits, head):
        """Makes commits after `head`; returns the last."""
        if not commits:
            return head
        self.commit("work", commits, head)
        return self.read("rev-parse", "work")

    def replay(self, directory):
        """Commits an earlier output; returns what was before and after each series, by name."""
        head, ends = self.read("rev-parse", "base"), {}
        for series in sorted(path for path in directory.iterdir() if path.is_dir()):
            start, patches = head, sorted(series.glob("*.patch"))
            try:
                head = self.apply([patch for patch in patches if "0000-" not in patch.name],
                                  "earlier", head)
            except subprocess.CalledProcessError:
                raise manifest.Error(f"the earlier {series.name} does not fit this base") from None
            ends[series.name] = start, head
        if not ends:
            raise manifest.Error("the directory of the earlier version has no series")
        return ends

    def commits(self):
        """Builds all patches; returns their commits."""
        self.build()
        return super().commits()
