# SPDX-License-Identifier: Apache-2.0
# bash completes the verbs and options of tetractl. Made by `tetractl completion`; source it,
# or put it into /etc/bash_completion.d.
_tetractl() {
  local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD - 1]}
  local verb="" options="" choices="" i
  local common="-h --host -p --port --token-file --ca-file --timeout --json -F --format --help --version -u --username -pw --password -pwf --password-file -pp --print-port"
  local verbs="help status ring describe-cluster describecluster describering gossipinfo getendpoints getseeds getdefaultrf partitions rebalance split merge setting remove-node removenode remove-lost-nodes recover-metadata decommission tablestats cfstats statusautocompaction disableautocompaction enableautocompaction flush compact repair verify recover viewbuildstatus datapaths drop-batches info version statusgossip statushandoff getmaxhintwindow getlogginglevels setlogginglevel log-level disk-encryption reload-certificates reloadssl statusbinary disablebinary enablebinary drain clientstats listcidrgroups getcidrgroupsofip updatecidrgroup dropcidrgroup cidrfilteringstats gettimeout settimeout gettraceprobability settraceprobability proxyhistograms tablehistograms cfhistograms tpstats toppartitions compactionstats netstats snapshot listsnapshots clearsnapshot certificates completion"
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      -h | --host | -p | --port | --token-file | --ca-file | -u | --username | -pw | --password | -pwf | --password-file | --timeout | -F | --format) ((i++)) ;;
      -* | help) ;;
      *) verb=${COMP_WORDS[i]}; break ;;
    esac
  done
  case $verb in
    status) options="-r --resolve-ip" ;;
    ring) options="-r --resolve-ip" ;;
    gossipinfo) options="-r --resolve-ip" ;;
    rebalance) options="--plan --apply" ;;
    setting) choices="balance_start_percent burst_ru_per_s max_logical_partition_mb max_physical_partition_mb physical_partition_ru_per_s" ;;
    remove-node | removenode) options="--no-wait" ;;
    remove-lost-nodes) options="--data-center --accept-loss --verbose" ;;
    recover-metadata) options="--accept-loss" ;;
    decommission) options="--no-wait -f --force --cancel" ;;
    tablestats | cfstats) options="-H --human-readable -i --ignore" ;;
    statusautocompaction) options="-a --all" ;;
    compact) options="-s --split-output" ;;
    repair) options="-st --start-token -et --end-token -local --in-local-dc -dc --in-dc -hosts --in-hosts -pr --partitioner-range -full --full -seq --sequential -dcpar --dc-parallel -j --job-threads -tr --trace" ;;
    verify) options="-e --extended-verify -f --force --mend --stop" ;;
    recover) options="--accept-loss" ;;
    info) options="-T --tokens" ;;
    version) options="-v --verbose" ;;
    log-level) choices="debug info warn error" ;;
    clientstats) options="--all --verbose --client-options --metadata --by-protocol --clear-history" ;;
    gettimeout) choices="cascontention counterwrite range read truncate write" ;;
    settimeout) choices="cascontention counterwrite range read truncate write" ;;
    toppartitions) options="-k --top -a --samplers -s --size" ;;
    compactionstats) options="-H --human-readable" ;;
    netstats) options="-H --human-readable" ;;
    snapshot) options="-t --tag -cf --column-family --table -kt -kc --kc.list --kt-list --ttl -sf --skip-flush" ;;
    listsnapshots) options="-nt --no-ttl -e --ephemeral" ;;
    clearsnapshot) options="-t --tag --all" ;;
    certificates) options="--client --days --renew" choices="/" ;;
  esac
  # Names of files only where one is meant; names that only a node knows are not asked for.
  case $last in
    --token-file | --ca-file | -pwf | --password-file) COMPREPLY=($(compgen -f -- "$word")); return ;;
    -F | --format) COMPREPLY=($(compgen -W "json yaml" -- "$word")); return ;;
  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options $common" -- "$word"))
  elif [ -z "$verb" ]; then
    COMPREPLY=($(compgen -W "$verbs" -- "$word"))
  elif [ "$last" != "$verb" ]; then
    COMPREPLY=()
  elif [ "$choices" = / ]; then
    COMPREPLY=($(compgen -d -- "$word"))
  else
    COMPREPLY=($(compgen -W "$choices" -- "$word"))
  fi
}
complete -F _tetractl tetractl
