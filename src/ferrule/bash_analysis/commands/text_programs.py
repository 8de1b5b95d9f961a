"""Programs that filter text, search it, or only print."""

from __future__ import annotations

_GREP = (
    "-aEFGPIRrHhLlZnobcCiqsTUuvwxyz -A: -B: -C: -D: -d: -e: -f:read -m: --extended-regexp --fixed-strings"
    " --basic-regexp --perl-regexp --regexp= --file=read --ignore-case --no-ignore-case --invert-match --word-regexp"
    " --line-regexp --count --color? --colour? --files-without-match --files-with-matches --max-count= --only-matching"
    " --quiet --silent --no-messages --byte-offset --with-filename --no-filename --label= --line-number --initial-tab"
    " --null --after-context= --before-context= --context= --text --binary-files= --devices= --directories= --exclude="
    " --exclude-from=read --exclude-dir= --include=glob --recursive --dereference-recursive --line-buffered --binary"
    " --null-data --version --help | pattern reads | harmless digits plain"
    " follows=-R,--dereference-recursive"
)

TEXT = {
    "grep": _GREP,
    "egrep": _GREP,
    "fgrep": _GREP,
    "rg": "-abcFhHiIlLnNopPqsSUuvwx.0 -A: -B: -C: -d: -e: -E: -f:read -g:glob -j: -m: -M: -r: -t: -T: --after-context="
    " --before-context= --context= --text --auto-hybrid-regex --binary --block-buffered --byte-offset --case-sensitive"
    " --color= --colors= --column --no-column --context-separator= --count --count-matches --crlf --debug"
    " --dfa-size-limit= --encoding= --engine= --field-context-separator= --field-match-separator= --file=read --files"
    " --files-with-matches --files-without-match --fixed-strings --follow --glob=glob --glob-case-insensitive --heading"
    " --no-heading --help --hidden --no-hidden --iglob=glob --ignore-case --include-zero --invert-match --json"
    " --line-buffered --line-number --no-line-number --line-regexp --max-columns= --max-columns-preview --max-count="
    " --max-depth= --max-filesize= --mmap --no-mmap --multiline --multiline-dotall --no-config --no-ignore"
    " --no-ignore-dot --no-ignore-exclude --no-ignore-files --no-ignore-global --no-ignore-messages"
    " --no-ignore-parent --no-ignore-vcs --no-messages --no-unicode --null --null-data --one-file-system"
    " --only-matching --passthru --path-separator= --pcre2 --pcre2-version --pretty --quiet --regex-size-limit="
    " --regexp= --replace= --smart-case --sort= --sortr= --stats --stop-on-nonmatch --threads= --trace --trim --type="
    " --type-list --type-add= --type-clear= --type-not= --unrestricted --version --vimgrep --with-filename"
    " --no-filename --word-regexp --no-pre --search-zip=unknown --pre=shell --hostname-bin=shell | pattern reads |"
    " cwd follows=-L,--follow",
    "fd": "-HIuUsigF0pLaq1 -E: -t: -e: -d: -S: -c: -j: --hidden --no-ignore --unrestricted --case-sensitive"
    " --ignore-case --glob --fixed-strings --absolute-path --list-details=unknown --follow --full-path --print0"
    " --max-depth= --min-depth= --exact-depth= --exclude= --type= --extension= --size= --changed-within="
    " --changed-before= --max-results= --color= --threads= --quiet --exec=shell --exec-batch=shell --version --help"
    " | pattern reads | cwd",
    "cut": "-nsz -b: -c: -d: -f: --bytes= --characters= --delimiter= --fields= --complement --only-delimited"
    " --output-delimiter= --zero-terminated --version --help | reads | harmless plain",
    "tr": "-cCdst --complement --delete --squeeze-repeats --truncate-set1 --version --help | text | harmless plain",
    "uniq": "-cdDiuz -f: -s: -w: --count --repeated --all-repeated? --skip-fields= --group? --ignore-case --skip-chars="
    " --unique --zero-terminated --check-chars= --version --help | read1 writes",
    "sort": "-bdfghiMnRrVcCmsuz -k: -t: -S: -o:write -T:unknown --ignore-leading-blanks --dictionary-order"
    " --ignore-case --general-numeric-sort --ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort"
    " --random-sort --reverse --sort= --version-sort --batch-size= --check? --debug --files0-from=unknown --key="
    " --merge --output=write --stable --buffer-size= --field-separator= --temporary-directory=unknown"
    " --compress-program=shell --parallel= --unique --zero-terminated --random-source=read --version --help | reads",
    "shuf": "-erz -i: -n: -o:write --echo --input-range= --head-count= --output=write --random-source=read --repeat"
    " --zero-terminated --version --help | reads",
    "paste": "-sz -d: --delimiters= --serial --zero-terminated --version --help | reads | harmless plain",
    "join": "-iz -a: -e: -o: -t: -v: -1: -2: -j: --ignore-case --header --check-order --nocheck-order"
    " --zero-terminated --version --help | reads | harmless plain",
    "fold": "-bs -w: --bytes --spaces --width= --version --help | reads | harmless digits plain",
    "fmt": "-cstu -p: -w: -g: --crown-margin --prefix= --split-only --tagged-paragraph --uniform-spacing --width="
    " --goal= --version --help | reads | harmless digits plain",
    "pr": "-acdfFJmrtTv -D: -e? -h: -i? -l: -n? -N: -o: -s? -S? -w: -W: --columns= --across --double-space"
    " --date-format= --form-feed --header= --length= --merge --number-lines? --omit-header"
    " --omit-pagination --width= --page-width= --version --help | reads | digits",
    "expand": "-i -t: --initial --tabs= --version --help | reads | harmless digits plain",
    "unexpand": "-a -t: --all --first-only --tabs= --version --help | reads | harmless digits plain",
    "column": "-txLJ -c: -s: -o: -N: -R: -T: -H: -O: -W: --table --separator= --output-separator= --columns="
    " --output-width= --table-columns= --table-right= --table-name= --json --keep-empty-lines --fillrows --version"
    " --help | reads | harmless plain",
    "rev": "| reads | harmless plain",
    "iconv": "-cl -f: -t: -o:write --from-code= --to-code= --list --output=write --silent --version --help | reads",
    "numfmt": "-d: -z --to= --from= --suffix= --padding= --field= --format= --grouping --header? --round= --delimiter="
    " --invalid= --version --help | text | plain",
    "echo": "-neE | text | harmless verbatim plain",
    "printf": "| text | format",
    "true": "| text | harmless verbatim plain",
    "false": "| text | harmless verbatim plain",
    ":": "| text | harmless verbatim plain",
    "seq": "-w -f: -s: --equal-width --format= --separator= --version --help | text | harmless digits plain",
    "expr": "--version --help | text | harmless verbatim plain",
    "factor": "--version --help | text | plain",
    "sleep": "--version --help | seconds | plain",
    "tsort": "--version --help | reads | plain",
    "bc": "-lqs --mathlib --quiet --standard --version --help | reads",
}
