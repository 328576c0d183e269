# Prints a piece of a file. Needs: file, from (counted from 1), most.
[ -r "$file" ] || { echo "can't be read" >&2; return 1; }
tail -c "+$from" -- "$file" | head -c "$most"
