#!/usr/bin/env node
// Fails on phrases that make our texts read like a translation, and on terminal words in the web app.
//
// Looks at every text a person reads: documentation, and comments and strings of the source code. An exception needs an
// entry in ALLOWED, with its reason.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const PHRASES = [
  [/(?<!there )\bis no (?!longer\b|more\b)/i, 'say "is not a"'],
  [/(?<!there )\bare no (?!longer\b|more\b)/i, 'say "are not" or "no … found"'],
  [/\bof which\b/i, 'make it two sentences'],
  [/\bthat of\b.{0,20}\bis that of\b/i, 'repeat the noun'],
  [/\b(held|hold|holds) (\w+ )?against\b/i, 'say "compare with"'],
  [/\b(is|are|was|were) told\b/i, 'say who reports it'],
  [/\bbesides\b/i, 'say "also" or "other than"'],
  [/\bwhoever\b/i, 'name the person'],
  [/\bmend(s|ed)?\b/i, 'say "fix"'],
  [/\bas it is[.,:;]/i, 'leave it out'],
  [/(?<!there )\b(is|are) none\b/i, 'say what it is not'],
  [/\bstands? (beside|below|once|in no)\b/i, 'say "is shown" or "is"'],
  [/\bby hand of\b|\bin vain\b|\bsay more of\b/i, 'use ordinary words'],
]
// Only in the strings of the web app: a page has labels and buttons, a terminal has flags and exit codes.
const TERMINAL = [
  [/(^|[\s"(])--[a-z][a-z-]+/, 'name the field or the button, not the flag'],
  [/`[^`]+`/, 'backticks are not shown as code on a page'],
  [/\bexit code\b/i, 'a page has no exit codes'],
]
// [path ending, text in the line, reason]
const ALLOWED = [
  ['scripts/lint-wording.mjs', '', 'it lists the phrases'],
  ['docs/accuracy.md', '', 'generated: its prose is in calibration/report.rs'],
]
const EXTENSIONS = /\.(rs|md|mjs|sh|css|html|toml)$/
const SKIPPED = /^(LICENSE|shared\/data\/|runner\/data\/|tests\/.*\/(fixtures|snapshots)\/|.*package-lock)/

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { encoding: 'utf8' })
  .split('\n')
  .filter((file) => (EXTENSIONS.test(file) || /^scripts\/[^.]+$/.test(file)) && !SKIPPED.test(file))

const isAllowed = (file, line) => ALLOWED.some(([end, text]) => file.endsWith(end) && line.includes(text))
const strings = (line) => [...line.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map((match) => match[1]).join('\n')
let faults = 0
for (const file of files) {
  let lines
  try {
    lines = readFileSync(file, 'utf8').split('\n')
  } catch {
    continue // deleted, but not yet committed
  }
  let inTests = false
  lines.forEach((line, index) => {
    if (/^\s*(#\[cfg\(test\)\]|mod tests)/.test(line)) inTests = true
    if (isAllowed(file, line)) return
    const report = (found, advice) => {
      faults += 1
      console.error(`${file}:${index + 1}: "${found.trim()}": ${advice}`)
    }
    for (const [phrase, advice] of PHRASES) {
      const found = phrase.exec(line)
      if (found) report(found[0], advice)
    }
    if (file.startsWith('web/src/') && !inTests && !line.trim().startsWith('//')) {
      for (const [phrase, advice] of TERMINAL) {
        const found = phrase.exec(strings(line))
        if (found) report(found[0], advice)
      }
    }
  })
}
if (faults > 0) {
  console.error(`lint-wording: ${faults} phrases to rewrite (see CONTRIBUTING.md)`)
  process.exit(1)
}
