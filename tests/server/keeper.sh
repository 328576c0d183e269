#!/bin/sh
# Runs COMMAND until standard input ends, which it does with the test that started this, however that ends; then removes
# FOLDER. A line on standard input ends COMMAND, by SIGNAL, or starts it again: `stop`, `start`.
#
#   keeper.sh FOLDER SIGNAL COMMAND...
folder=$1 signal=$2
shift 2
start() { "$@" >>"$folder/output" 2>&1 </dev/null & child=$!; }
stop() { kill -"$signal" "$child"; wait "$child"; }
trap '' INT TERM # Ctrl-C is for the tests
exec 2>/dev/null # a shell tells of every child that was killed
start "$@"
while read -r order; do
  case $order in
    stop) stop ;;
    start) start "$@" ;;
  esac
  echo ok
done
stop
rm -rf "$folder"
