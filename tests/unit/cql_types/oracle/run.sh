#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs Oracle.java with Cassandra's jars (refcass fetch puts them into $REFCASS_HOME/lib).
#   run.sh FOLDER [SEED] [PAIRS] [VALUES]     the recorded files: run.sh recorded 7 130 60
set -e
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/recorded} seed=${2:-7} pairs=${3:-130} values=${4:-60}
case $folder in /*) ;; *) folder=$PWD/$folder ;; esac
jars="${REFCASS_HOME:-$HOME/.cache/refcass}/lib/*"
classes=$(mktemp -d)
trap 'rm -rf "$classes"' EXIT
javac -nowarn -encoding UTF-8 -cp "$jars" -d "$classes" "$here/Oracle.java" 2> >(grep -v '^Note' >&2)
open=()
for package in java.lang java.lang.module java.lang.reflect java.nio java.io java.util java.util.concurrent \
    java.util.concurrent.atomic jdk.internal.loader jdk.internal.ref jdk.internal.reflect jdk.internal.math \
    jdk.internal.module sun.nio.ch sun.nio.fs; do
  open+=(--add-opens "java.base/$package=ALL-UNNAMED")
done
for export in java.base/jdk.internal.misc java.base/jdk.internal.ref jdk.unsupported/sun.misc \
    java.management.rmi/com.sun.jmx.remote.internal.rmi java.rmi/sun.rmi.registry java.rmi/sun.rmi.server; do
  open+=(--add-exports "$export=ALL-UNNAMED")
done
java -ea -Duser.timezone=UTC -Dfile.encoding=UTF-8 -Doracle.inputs="$here/inputs" "${open[@]}" \
    -cp "$classes:$jars" Oracle "$folder" "$seed" "$pairs" "$values" > "$classes/log" 2>&1 || { tail -30 "$classes/log"; exit 1; }
