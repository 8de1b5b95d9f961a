# Read by the shell before its command, by way of BASH_ENV: as the shell exits, it says where it stands.
unset BASH_ENV
trap "{ builtin pwd -P >&$FERRULE_REPORT; } 2>&-" EXIT
unset FERRULE_REPORT
