# SPDX-License-Identifier: Apache-2.0
# For the suites in Python: a virtual environment per lock file, kept in build/venvs, and the counts of their parts.

# make_venv NAME REQUIREMENTS: prints the path of a Python that has exactly what REQUIREMENTS pins.
make_venv() {
  local top venv
  top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
  venv=$top/build/venvs/$1
  if ! cmp -s "$2" "$venv/installed.txt"; then
    rm -rf "$venv"
    mkdir -p "$(dirname "$venv")"
    python3 -m venv "$venv" >&2 && "$venv/bin/pip" install -q --disable-pip-version-check -r "$2" >&2 &&
      cp "$2" "$venv/installed.txt" || { echo "cannot make the Python environment $1" >&2; return 1; }
  fi
  echo "$venv/bin/python"
}

# count_parts OUTPUT: adds its last line, "N passed, N failed" and perhaps more, to $passed and $failed. No such line is a
# failure.
count_parts() {
  local line=${1##*$'\n'}
  if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed ]]; then
    passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
  else
    failed=$((failed + 1))
  fi
}

# count_pytest LOG: adds what pytest's last line in LOG says to $passed and $failed. No such line is a failure.
count_pytest() {
  local line good bad errors
  line=$(grep -E '^(=+ )?[0-9]+ (passed|failed|skipped|error)' "$1" | tail -1)
  good=$(grep -oE '[0-9]+ passed' <<<"$line" | cut -d' ' -f1)
  bad=$(grep -oE '[0-9]+ failed' <<<"$line" | cut -d' ' -f1)
  errors=$(grep -oE '[0-9]+ error' <<<"$line" | cut -d' ' -f1)
  [ -n "$line" ] || bad=1
  passed=$((passed + ${good:-0}))
  failed=$((failed + ${bad:-0} + ${errors:-0}))
}
