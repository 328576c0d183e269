# Prints a part of a file. Needs: file, from (counted from 1), most (bytes).
[ -r "$file" ] || { echo "Can't read $file" >&2; return 1; }
tail -c "+$from" -- "$file" | head -c "$most"
