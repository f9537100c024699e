# SPDX-License-Identifier: Apache-2.0
# "Did you mean ...?" for the scripts in this folder, nearly by the rule of base/closest_name.h. Sourced.

# edits_between A B: letters put in, taken out or changed (Levenshtein), row by row.
edits_between() {
  local a=$1 b=$2 i j diagonal changed least
  local -a row=()
  for ((j = 0; j <= ${#b}; j++)); do row[j]=$j; done
  for ((i = 1; i <= ${#a}; i++)); do
    diagonal=${row[0]} row[0]=$i
    for ((j = 1; j <= ${#b}; j++)); do
      changed=$diagonal diagonal=${row[j]}
      [ "${a:i-1:1}" = "${b:j-1:1}" ] || changed=$((changed + 1))
      least=$((row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1))
      row[j]=$((changed < least ? changed : least))
    done
  done
  echo "${row[${#b}]}"
}

# did_you_mean WORD NAME...: "; did you mean NAME?" of the only name that begins with the word, or of that which fewest edits
# make of it, if they are no more than a third of its letters; otherwise nothing. Of --name=value the name is looked at.
did_you_mean() {
  local word=${1%%=*} best="" begun=0 fewest edits name
  shift
  [ ${#word} -le 100 ] || return 0
  for name in "$@"; do
    [[ $name != "$word"* ]] || best=$name begun=$((begun + 1))
  done
  fewest=$((${#word} / 3 + 1))
  if [ $begun -eq 1 ] && [ ${#word} -ge 4 ]; then
    fewest=0
  else
    best=""
  fi
  for name in "$@"; do
    edits=$(edits_between "$word" "$name")
    [ "$edits" -lt "$fewest" ] || continue
    fewest=$edits best=$name
  done
  [ -z "$best" ] || echo "; did you mean $best?"
}

# options_in TEXT: the options that a help text names, a line each.
options_in() { grep -oE -- '(^|[^-a-z])--[a-z][-a-z]*' <<<"$1" | grep -oE -- '--.*' | sort -u; }
