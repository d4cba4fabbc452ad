#!/bin/sh
# The ctest `tools.dev_test`: what ./dev does without building anything.
set -u
cd "$(dirname "$0")/.." || exit 1
unset BERTH_NO_INSTALL
failures=0

# expect NAME STATUS TEXT COMMAND...: exit status, and TEXT in the output.
expect() {
  name=$1 status=$2 text=$3
  shift 3
  output=$("$@" 2>&1 </dev/null)
  got=$?
  if [ $got -ne "$status" ]; then
    echo "FAIL $name: exit status $got, expected $status: $output"
    failures=$((failures + 1))
  fi
  case $output in
    *"$text"*) ;;
    *)
      echo "FAIL $name: no '$text' in: $output"
      failures=$((failures + 1))
      ;;
  esac
}

expect "help lists the commands" 0 "train [ARGS]" ./dev help
expect "no command prints the help" 0 "train [ARGS]" ./dev
expect "an unknown command is named" 2 "no command 'sail'" ./dev sail
expect "gpu lists what it runs" 0 "OpenCL: conformance, test" ./dev gpu --list
expect "gpu runs parts that exist" 1 "no part's name has rum" \
  python3 tools/gpu_all build/none --only rum
expect "an unknown group is named" 1 "no group 'rum'" ./dev setup rum

# A stand-in for a machine where nothing is installed and nobody is root.
fake=$(mktemp -d) || exit 1
trap 'rm -rf "$fake"' EXIT
printf '#!/bin/sh\nexit 1\n' >"$fake/dpkg-query"
printf '#!/bin/sh\necho 1000\n' >"$fake/id"
printf '#!/bin/sh\nexit 1\n' >"$fake/sudo"
printf '#!/bin/sh\necho "apt-get must not run"\nexit 9\n' >"$fake/apt-get"
chmod +x "$fake"/*
bare() { env PATH="$fake:$PATH" "$@"; }
expect "without rights it says what to install" 1 \
  "apt-get update && apt-get install -y" bare ./dev train
expect "the build group is named" 1 "libdnnl-dev" bare ./dev train
expect "no install on request" 1 "BERTH_NO_INSTALL is set" \
  bare env BERTH_NO_INSTALL=1 ./dev build
case $(bare ./dev train 2>&1 </dev/null) in
  *libgtest-dev* | *"must not run"*)
    echo "FAIL train asks for more than the build group"
    failures=$((failures + 1))
    ;;
esac

# A stand-in where all is installed: no package tool is touched.
printf '#!/bin/sh\necho installed\n' >"$fake/dpkg-query"
expect "nothing to do when all is here" 0 "packages of build test are here" \
  bare ./dev setup

# A failed installation is an error that shows what was tried.
printf '#!/bin/sh\necho 0\n' >"$fake/id"
printf '#!/bin/sh\nexit 1\n' >"$fake/dpkg-query"
expect "a failed update is reported" 1 "apt-get update failed" \
  bare ./dev setup build

[ $failures -eq 0 ] && echo "dev_test: all claims hold"
exit $failures
