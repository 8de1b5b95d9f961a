"""Programs that read files and print. The form of an entry is explained in `table.py`."""

from __future__ import annotations

_SUMS = ("sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum")
_SUM = (
    "-bctwz --binary --check --tag --text --zero --quiet --status --strict --warn --ignore-missing --version --help"
    " | reads | harmless plain"
)

READING = {
    "ls": "-aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1 -I: -T: -w: --all --almost-all --author --escape --block-size="
    " --ignore-backups --color? --directory --dired --classify? --file-type --format= --full-time"
    " --group-directories-first --no-group --human-readable --si --dereference-command-line --hide= --hyperlink?"
    " --indicator-style= --inode --ignore= --kibibytes --dereference --numeric-uid-gid --literal --hide-control-chars"
    " --quote-name --quoting-style= --reverse --recursive --size --sort= --time= --time-style= --tabsize= --width="
    " --context --zero --version --help | reads | harmless cwd plain names",
    "dir": "-aAlhrRtS1 | reads | harmless cwd plain names",
    "cat": "-AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs"
    " --show-nonprinting --version --help | reads | harmless plain",
    "tac": "-br -s: --before --regex --separator= --version --help | reads | harmless plain",
    "nl": "-p -b: -d: -f: -h: -i: -l: -n: -s: -v: -w: --body-numbering= --number-format= --number-width="
    " --version --help | reads | harmless plain",
    "head": "-qvz -n: -c: --bytes= --lines= --quiet --silent --verbose --zero-terminated --version --help | reads"
    " | harmless digits plain",
    "tail": "-qvz -n: -c: -s: --bytes= --lines= --retry --pid= --quiet --silent --sleep-interval="
    " --verbose --zero-terminated --version --help | reads | harmless digits plain",
    "wc": "-cmlLw --bytes --chars --lines --files0-from=unknown --max-line-length --words --total= --version --help"
    " | reads | harmless plain",
    "stat": "-Lft -c: --dereference --file-system --format= --printf= --terse --version --help | reads | harmless"
    " plain names",
    "file": "-bhiLNr0k -F: -P: --brief --mime --mime-type --mime-encoding --dereference --no-dereference"
    " --extension --keep-going --raw --separator= --version --help | reads",
    "du": "-abcDhHkLlmPSsx0 -d: -t: -B: --all --apparent-size --block-size= --bytes --total --dereference --max-depth="
    " --human-readable --inodes --count-links --no-dereference --separate-dirs --si --summarize --threshold= --time?"
    " --exclude= --one-file-system --null --version --help | reads | harmless cwd plain names",
    "df": "-ahHikLlPTv -B: -t: -x: --all --block-size= --human-readable --si --inodes --local --portability --total"
    " --output? --type= --print-type --exclude-type= --version --help | reads | harmless plain names",
    "tree": "-adfilpsugDhrtUvcnCASNJXQ -L: -I: -P: --noreport --dirsfirst --filesfirst --prune --du --si --gitignore"
    " --inodes --device --filelimit= --matchdirs --ignore-case --sort= --charset= --version --help | reads | cwd",
    "basename": "-az -s: --multiple --suffix= --zero --version --help | text | harmless plain",
    "dirname": "-z --zero --version --help | text | harmless plain",
    "realpath": "-eLmPqsz --canonicalize-existing --canonicalize-missing --logical --physical --quiet --relative-to="
    " --relative-base= --strip --no-symlinks --zero --version --help | reads | harmless plain names",
    "readlink": "-femnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --quiet --silent"
    " --verbose --zero --version --help | reads | harmless plain names",
    "pwd": "-LP --logical --physical --version --help | none | plain",
    "md5sum": _SUM,
    **dict.fromkeys(_SUMS, _SUM),
    "b2sum": "-bctwz -l: --check --length= --tag --zero --version --help | reads | harmless plain",
    "cksum": "-a: --algorithm= --base64 --check --untagged --version --help | reads | harmless plain",
    "base64": "-di -w: --decode --ignore-garbage --wrap= --version --help | reads | harmless plain",
    "base32": "-di -w: --decode --ignore-garbage --wrap= --version --help | reads | harmless plain",
    "cmp": "-bls -i: -n: --print-bytes --ignore-initial= --verbose --bytes= --quiet --silent --version --help | reads"
    " | harmless plain",
    "comm": "-123z --check-order --nocheck-order --output-delimiter= --total --zero-terminated --version --help | reads"
    " | harmless plain",
    "diff": "-aBbcdEeHiNnpPqrsTtuwyZ -C: -F: -I: -S: -U: -W: -x: -X:read --brief --report-identical-files --context?"
    " --unified? --ed --normal --rcs --side-by-side --width= --left-column --suppress-common-lines --show-c-function"
    " --show-function-line= --label= --expand-tabs --initial-tab --tabsize= --recursive --no-dereference --new-file"
    " --unidirectional-new-file --exclude= --exclude-from=read --starting-file= --from-file=read --to-file=read"
    " --ignore-case --ignore-file-name-case --ignore-tab-expansion --ignore-trailing-space --ignore-space-change"
    " --ignore-all-space --ignore-blank-lines --ignore-matching-lines= --text --strip-trailing-cr --minimal"
    " --speed-large-files --color? --palette= --version --help | reads | follows=-r,--recursive",
    "od": "-abcdfiloxv -A: -j: -N: -S: -t: -w? --address-radix= --skip-bytes= --read-bytes= --format="
    " --output-duplicates --width? --version --help | reads | harmless plain",
    "hexdump": "-bcCdovx -e: -n: -s: | reads",
    "hd": "-bcCdovx -e: -n: -s: | reads",
    "strings": "-afow -n: -t: -e: -s: --all --print-file-name --bytes= --radix= --encoding= --include-all-whitespace"
    " --version --help | reads | digits responses",
    "nm": "-aABCDglnoPpruvS -t: --demangle? --dynamic --extern-only --defined-only --undefined-only --print-size"
    " --size-sort --numeric-sort --version --help | reads | responses",
    "objdump": "-adDfghprsStTxCwlz -b: -m: -M: -j: --disassemble --headers --syms --demangle? --section= --version"
    " --help | reads | responses",
    "readelf": "-aAdehlnrsSuVW -x: -p: --all --file-header --headers --sections --symbols --syms --dynamic --notes"
    " --relocs --segments --wide --version --help | reads | responses",
    "size": "-ABdotx --format= --totals --version --help | reads | responses",
    "xxd": "-abeEipu -c: -g: -l: -s: -o: | read1 writes",
    "sum": "-rs --sysv --version --help | reads | harmless plain",
    "zipinfo": "-12smlvhtTMZ | reads",
    "zcat": "-fv | reads | harmless",
}
