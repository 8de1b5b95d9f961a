"""Programs that change files. What they change is declared, so that a rule or a mode can allow it."""

from __future__ import annotations

WRITING = {
    "touch": "-acm -d: -r:read -t: -h --no-create --date= --reference=read --time= --no-dereference --version --help"
    " | writes",
    "mkdir": "-pv -m: --mode= --parents --verbose --version --help | creates",
    "rmdir": "-pv --ignore-fail-on-non-empty --parents --verbose --version --help | unlinks",
    "rm": "-dfiIrRv --force --interactive? --one-file-system --no-preserve-root --preserve-root? --recursive --dir"
    " --verbose --version --help | unlinks",
    "unlink": "--version --help | unlinks",
    "shred": "-fuvxz -n: -s: --force --iterations= --remove? --verbose --exact --zero | deletes",
    "truncate": "-co -r:read -s: --no-create --io-blocks --reference=read --size= --version --help | writes",
    "tee": "-aip --append --ignore-interrupts --output-error? --version --help | writes",
    "chmod": "-cfvRr --changes --quiet --silent --verbose --reference=read --recursive --preserve-root"
    " --no-preserve-root --version --help | text1 writes | modes",
    "chown": "-cfhRvHLP --changes --quiet --silent --verbose --dereference --no-dereference --from= --reference=read"
    " --recursive --preserve-root --no-preserve-root --version --help | text1 writes | follows=-L,-H",
    "chgrp": "-cfhRvHLP --changes --quiet --silent --verbose --recursive --reference=read --version --help | text1"
    " writes | follows=-L,-H",
    "cp": "-abdfiHlLnPprRsTuvxZ -S: -t: --archive --attributes-only --backup? --copy-contents --force"
    " --interactive --link --dereference --no-clobber --no-dereference --preserve? --no-preserve= --parents --recursive"
    " --reflink? --remove-destination --sparse= --strip-trailing-slashes --symbolic-link --suffix="
    " --target-directory= --no-target-directory --update? --verbose --one-file-system --version --help | copies",
    "mv": "-bfinTuvZ -S: -t: --backup? --force --interactive --no-clobber --strip-trailing-slashes --suffix="
    " --target-directory= --no-target-directory --update? --verbose --version --help | moves",
    "ln": "-bdFfiLnPrsTv -S: -t: --backup? --directory --force --interactive --logical --no-dereference --physical"
    " --relative --symbolic --suffix= --target-directory= --no-target-directory --verbose --version --help |"
    " links",
}
