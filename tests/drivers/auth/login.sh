#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# LOGIN in cqlsh: login.sh HOST, whose superuser is cassandra with the password cassandra. Last line N passed, N failed.
set -u
top=$(cd "$(dirname "$0")/../../.." && pwd)
host=$1 passed=0 failed=0
# says TEXT STATEMENTS: what the shell answers to them has the text.
says() {
  local answer
  answer=$("$top/tools/cqlsh" -u cassandra -p cassandra "$host" -e "$2" 2>&1)
  if grep -qF -- "$1" <<<"$answer"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'wrong: %s\n%s\n' "$2" "$answer"
  fi
}
says "(0 rows)" "CREATE ROLE shell WITH PASSWORD = 'word' AND LOGIN = true; SELECT * FROM system_auth.role_members;"
says "User shell has no SELECT permission on <table system_auth.roles>" "LOGIN shell 'word'; SELECT * FROM system_auth.roles;"
says "cassandra" "LOGIN shell 'word'; LOGIN cassandra 'cassandra'; SELECT role FROM system_auth.roles;"
says "Provided username shell and/or password are incorrect" "LOGIN shell 'wrong'; SELECT key FROM system.local;"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
