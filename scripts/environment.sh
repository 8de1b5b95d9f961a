# Sourced by the other scripts: makes .venv and installs what is locked, and does nothing when that is done.
# usage: prepare run|dev

prepare() {
    local kind=$1 python=${PYTHON:-python3} wanted stamp
    if ! "$python" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        echo "Ferrule needs Python 3.11 or later with venv; $python is not that. Set PYTHON to one that is." >&2
        exit 2
    fi
    wanted=$("$python" -VV | cat - pyproject.toml requirements/build.lock "requirements/$kind.lock" | cksum)
    stamp=.venv/.ferrule-$kind
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && return
    echo "Setting up .venv; this happens once." >&2
    [ -x .venv/bin/python ] && .venv/bin/python -c '' 2>/dev/null || "$python" -m venv --clear .venv
    local pip=(.venv/bin/python -m pip --quiet --disable-pip-version-check install)
    "${pip[@]}" --require-hashes -r requirements/build.lock -r "requirements/$kind.lock"
    "${pip[@]}" --no-deps --no-build-isolation --editable .
    echo "$wanted" >"$stamp"
}
