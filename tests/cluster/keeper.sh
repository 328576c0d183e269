#!/usr/bin/env bash
# Runs a cluster until its standard input ends: munge, Slurm and sshd on 127.0.0.1, with all files in one folder.
#
#   keeper.sh FOLDER FIRST_PORT NODES ACCOUNTING(yes|no)
#
# Prints "ready" when all nodes are idle. Then reads one command per line, and answers "ok" or "error ...":
#
#   freeze|thaw|stop|start sshd|slurmctld|slurmdbd|nN
#   shell PATH  changes root's login shell for new logins
#   hang-up     kills all ssh connections, but not the listening sshd
#
# The daemons run in their own namespaces: all end with the first process there, this script, and only they see the mounts over
# /run and root's home. FOLDER is removed at the end unless TRAINPLAN_KEEP_CLUSTER is set.
set -euo pipefail

folder=$1
if [ $$ -ne 1 ]; then
  code=0
  unshare --mount --propagation private --pid --fork --kill-child --mount-proc bash "$0" "$@" || code=$?
  [ -n "${TRAINPLAN_KEEP_CLUSTER:-}" ] || rm -rf -- "$folder"
  exit "$code"
fi

first_port=$2 nodes=$3 accounting=$4
ssh_port=$first_port slurmctld_port=$((first_port + 1)) slurmdbd_port=$((first_port + 2))
node_port=$((first_port + 3))
host=$(hostname -s)
home=$(getent passwd root | cut -d: -f6)
export TMPDIR=$folder/tmp SLURM_CONF=$folder/slurm.conf
PATH=$folder/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
log=$folder/log

# Prints the error with the last lines of a daemon's log, and exits: further commands would fail for the same reason.
fail() {
  echo "error $*: $(tail -qn 5 "$log"/{munged,mariadbd,slurmdbd,slurmctld,n1,sshd} 2>/dev/null | tr '\n' '|')"
  exit 1
}

# until_true SECONDS COMMAND...
until_true() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.05
  done
}

# daemon NAME COMMAND...: starts a program that stays in the foreground.
declare -A pid
daemon() {
  local name=$1
  shift
  "$@" </dev/null >>"$log/$name" 2>&1 &
  pid[$name]=$!
}

# Creates the folders and mounts them over those of the machine.
mkdir -p "$folder"/{bin,dev,home,log,slurmctld,slurmd,ssh,tmp}
chmod 755 "$folder"
chmod 1777 "$folder/tmp"
mount --bind "$folder/home" "$home"
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/munge /run/mysqld /run/sshd
cd "$home"
exec 2>>"$log/keeper" # bash says there which daemons were killed

write_slurm_conf() {
  for gpu in {0..7}; do
    [ -e "$folder/dev/gpu$gpu" ] || mknod "$folder/dev/gpu$gpu" c 1 3 # a GPU must be a device: the null device
  done
  echo "NodeName=n[1-$nodes] Name=gpu File=$folder/dev/gpu[0-7]" >"$folder/gres.conf"
  cat >"$folder/slurm.conf" <<END
ClusterName=loop
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$slurmctld_port
AuthType=auth/munge
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$folder/slurmctld
SlurmdSpoolDir=$folder/slurmd/%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd/%n.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
GresTypes=gpu
SlurmdParameters=config_overrides
MailProg=/bin/true
NodeName=n[1-$nodes] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$node_port-$((node_port + nodes - 1))] CPUs=8 RealMemory=1000 Gres=gpu:8
PartitionName=batch Nodes=n[1-$nodes] Default=YES MaxTime=INFINITE State=UP
END
  if [ "$accounting" = yes ]; then
    cat >>"$folder/slurm.conf" <<END
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$slurmdbd_port
AccountingStoreFlags=job_comment
END
    # It finds MariaDB by the socket in the private /run, and is authenticated by its user.
    cat >"$folder/slurmdbd.conf" <<END
AuthType=auth/munge
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$slurmdbd_port
SlurmUser=root
PidFile=$folder/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm
END
    chmod 600 "$folder/slurmdbd.conf"
  else
    echo "AccountingStorageType=accounting_storage/none" >>"$folder/slurm.conf"
  fi
  cat "$folder/extra.conf" >>"$folder/slurm.conf"
}

write_ssh_conf() {
  local keys=$folder/ssh
  ssh-keygen -q -t ed25519 -N '' -C loop-host -f "$keys/host"
  ssh-keygen -q -t ed25519 -N '' -C loop-user -f "$keys/user"
  cp "$keys/user.pub" "$keys/authorized_keys"
  echo "[127.0.0.1]:$ssh_port $(cut -d' ' -f1,2 "$keys/host.pub")" >"$keys/known_hosts"
  cat >"$keys/sshd_config" <<END
ListenAddress 127.0.0.1
Port $ssh_port
HostKey $keys/host
AuthorizedKeysFile $keys/authorized_keys
StrictModes no
PidFile none
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
PrintMotd no
SetEnv "PATH=$PATH" SLURM_CONF=$SLURM_CONF TMPDIR=$TMPDIR
Subsystem sftp internal-sftp
END
  # "far" is the same machine, but behind a jump host.
  cat >"$keys/config" <<END
Host loop far
  HostName 127.0.0.1
  Port $ssh_port
  User root
  IdentityFile $keys/user
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile $keys/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
Host far
  ProxyJump loop
END
}

# Settings that are faster, and unsafe only if the machine crashes.
start_mariadb() {
  mariadb-install-db --no-defaults --datadir="$folder/db" --user=root --skip-test-db \
    --auth-root-authentication-method=socket --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0 \
    --innodb-log-file-size=8M >"$log/mariadb-install-db" 2>&1
  daemon mariadbd mariadbd --no-defaults --datadir="$folder/db" --user=root --skip-networking \
    --socket=/run/mysqld/mysqld.sock --innodb-buffer-pool-size=128M --innodb-flush-log-at-trx-commit=0 \
    --innodb-doublewrite=0 --innodb-log-file-size=8M --innodb-lock-wait-timeout=900
  until_true 30 mariadb-admin --no-defaults ping || fail "MariaDB does not start"
}

listens() { (: <"/dev/tcp/127.0.0.1/$1"); }
slurmctld_is_up() { scontrol ping | grep 'is UP'; }
all_idle() { [ "$(sinfo --noheader --states=idle --format=%D)" = "$nodes" ]; }
no_more() { ! kill -0 "$1"; }

# launch NAME: starts a daemon and waits until it answers.
launch() {
  case $1 in
    sshd)
      daemon sshd /usr/sbin/sshd -D -e -f "$folder/ssh/sshd_config"
      until_true 10 listens "$ssh_port" ;;
    slurmctld)
      daemon slurmctld slurmctld -D
      until_true 20 slurmctld_is_up ;;
    slurmdbd)
      daemon slurmdbd slurmdbd -D
      until_true 30 listens "$slurmdbd_port" ;;
    n*) daemon "$1" slurmd -D -N "$1" ;;
  esac
}

# The processes of a daemon. sshd also has one for every connection.
processes() {
  local status name
  if [ "$1" != sshd ]; then
    echo "${pid[$1]}"
    return
  fi
  for status in /proc/[0-9]*/comm; do
    name=
    { read -r name <"$status"; } 2>/dev/null || continue
    [ "$name" != sshd ] || { status=${status#/proc/} && echo "${status%/comm}"; }
  done
}

# send SIGNAL PROCESS...: some may have ended meanwhile.
send() {
  local signal=$1 process
  shift
  for process; do kill "-$signal" "$process" 2>/dev/null || true; done
}

# login_shell PROGRAM: mounts another passwd file in this namespace.
login_shell() {
  sed "s|^\(root:.*:\).*|\1$1|" /etc/passwd >"$folder/passwd.new"
  if ! mountpoint -q /etc/passwd; then
    cp "$folder/passwd.new" "$folder/passwd"
    mount --bind "$folder/passwd" /etc/passwd
  fi
  cat "$folder/passwd.new" >"$folder/passwd"
}

obey() {
  if [ "$1" = shell ]; then
    if login_shell "$2"; then echo ok; else echo "error $2 can't be a login shell"; fi
    return
  fi
  local name=${2:-sshd} signal
  [[ -v pid[$name] ]] || { echo "error $name is not running"; return; }
  # shellcheck disable=SC2046 # process ids are words
  case $1 in
    freeze) send STOP $(processes "$name") ;;
    thaw) send CONT $(processes "$name") ;;
    stop)
      # slurmctld saves its state only if it is asked to end.
      case $name in slurmctld | slurmdbd) signal=TERM ;; *) signal=KILL ;; esac
      send $signal $(processes "$name")
      until_true 20 no_more "${pid[$name]}" || { echo "error $name does not stop"; return; } ;;
    start)
      if kill -0 "${pid[$name]}" 2>/dev/null; then echo "error $name runs already"; return; fi
      launch "$name" || { echo "error $name does not start: $(tail -n 5 "$log/$name" | tr '\n' '|')"; return; } ;;
    hang-up) send KILL $(processes sshd | grep -vx "${pid[sshd]}") ;;
    *) echo "error no such command: $*"; return ;;
  esac
  echo ok
}

write_slurm_conf
write_ssh_conf
head -c 1024 /dev/urandom >"$folder/munge.key"
chmod 400 "$folder/munge.key"
daemon munged munged --foreground --force --key-file="$folder/munge.key" \
  --pid-file="$folder/munged.pid" --seed-file="$folder/munge.seed" --log-file="$log/munged"
launch sshd || fail "sshd does not start"
until_true 10 test -S /run/munge/munge.socket.2 || fail "munged does not start"
if [ "$accounting" = yes ]; then
  start_mariadb
  launch slurmdbd || fail "slurmdbd does not start"
fi
launch slurmctld || fail "slurmctld does not start"
for ((node = 1; node <= nodes; node++)); do launch "n$node"; done
until_true 60 all_idle || fail "not every node comes up"
echo ready
while read -r line; do
  # shellcheck disable=SC2086 # a command and its argument
  obey $line
done
