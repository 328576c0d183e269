# Prints the names in the folder of a log, and the files of a list that are there. Needs: mark, folder, files (paths
# from the folder, one in a line), most (bytes of each).
cd "$folder" || return 1
printf '%s names\n' "$mark"
printf '%s\n' * | head -c "$most"
printf '%s\n' "$files" | while IFS= read -r file; do
  if [ -f "$file" ] && [ -r "$file" ]; then
    printf '\n%s file %s\n' "$mark" "$file"
    head -c "$most" -- "$file"
  fi
done
printf '\n%s end\n' "$mark"
