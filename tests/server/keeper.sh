#!/bin/sh
# Runs COMMAND until standard input ends, which it does with the test that started this, however that ends; then removes
# FOLDER. A line on standard input ends COMMAND with that signal, or starts it again: `stop`, `start`.
#
#   keeper.sh FOLDER COMMAND...
folder=$1
shift
start() { "$@" >>"$folder/output" 2>&1 </dev/null & child=$!; }
stop() { kill -QUIT "$child"; wait "$child"; }
trap '' INT TERM # Ctrl-C is for the tests
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
