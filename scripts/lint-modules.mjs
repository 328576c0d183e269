#!/usr/bin/env node
// Fails if modules of a crate depend on each other in a circle, use a module they must not, or if two types of a crate
// share a name.
//
// Reads the paths in the source code (`use` lines and paths within the code) and follows re-exports. Only sibling
// modules can form a circle here: a parent may use its children, and they may use it. Tests are left out.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const CRATES = { shared: 'trainplan_shared', runner: 'trainplan', web: 'trainplan_web' }
// [crate, module, what it must not use, reason]
const FORBIDDEN = [
  ['web', 'worker', 'pages', 'the worker has no page'],
  ['web', 'worker', 'components', 'the worker has no page'],
  ['web', 'message', 'worker', 'both sides speak in messages'],
  ['web', 'message', 'pages', 'both sides speak in messages'],
]
// Type names that may occur more than once in a crate: each is private to its file and means the same thing there.
const SHARED_NAMES = new Set(['Args', 'Row'])

let faults = 0
const fault = (text) => {
  faults += 1
  console.error(text)
}

/// The code of a file without comments, strings and tests.
function code(path) {
  let text = readFileSync(path, 'utf8')
  const tests = text.search(/^#\[cfg\(test\)\]\s*\n(pub(\(\w+\))? )?mod \w+ \{/m)
  if (tests >= 0) text = text.slice(0, tests)
  return text
    .replace(/\/\/.*$/gm, '')
    .replace(/"(?:[^"\\]|\\[\s\S])*"/g, '""')
    .replace(/#\[cfg\(test\)\]\s*\n[^;{]*;/g, '')
}

/// Every path that a `use` tree names: `a::{b, c::d as e}` gives [a, b] and [a, c, d], with the name it is bound to.
function paths(tree) {
  const found = []
  const walk = (text, prefix) => {
    let depth = 0
    let item = ''
    const items = []
    for (const c of text) {
      if (c === '{') depth += 1
      if (c === '}') depth -= 1
      if (c === ',' && depth === 0) {
        items.push(item)
        item = ''
      } else item += c
    }
    items.push(item)
    for (const each of items.map((one) => one.trim()).filter(Boolean)) {
      const open = each.indexOf('{')
      if (open >= 0) {
        const before = each.slice(0, open).split('::').map((part) => part.trim()).filter(Boolean)
        walk(each.slice(open + 1, each.lastIndexOf('}')), [...prefix, ...before])
      } else {
        const [path, name] = each.split(/\s+as\s+/)
        const parts = [...prefix, ...path.split('::').map((part) => part.trim())].filter((part) => part !== '')
        if (parts.at(-1) === 'self') parts.pop()
        found.push({ parts, name: name ?? parts.at(-1) })
      }
    }
  }
  walk(tree, [])
  return found
}

for (const crate of Object.keys(CRATES)) {
  const root = `${crate}/src/`
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', root], { encoding: 'utf8' })
    .split('\n')
    .filter((file) => file.endsWith('.rs') && !/(^|\/)tests?(\/|\.rs$)/.test(file.slice(root.length)) && !file.includes('/bin/'))
  const modules = new Map() // 'a::b' -> {text, uses, reexports}
  for (const file of files) {
    let text
    try {
      text = code(file)
    } catch {
      continue // deleted, but not yet committed
    }
    const inner = file.slice(root.length, -3).split('/')
    if (['mod', 'lib', 'main'].includes(inner.at(-1))) inner.pop()
    modules.set(inner.join('::'), { file, text, path: inner, reexports: new Map(), uses: [] })
  }
  // From a written path to one that starts at the crate's root; null if it leads elsewhere.
  const absolute = (parts, at) => {
    if (parts[0] === 'crate') return parts.slice(1)
    if (parts[0] === 'self') return [...at, ...parts.slice(1)]
    if (parts[0] === 'super') {
      let up = at
      while (parts[0] === 'super') {
        up = up.slice(0, -1)
        parts = parts.slice(1)
      }
      return [...up, ...parts]
    }
    if (modules.has([...at, parts[0]].join('::'))) return [...at, ...parts]
    return null
  }
  for (const module of modules.values()) {
    for (const [, visible, tree] of module.text.matchAll(/^\s*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);/gm)) {
      for (const { parts, name } of paths(tree)) {
        const target = absolute(parts, module.path)
        if (!target) continue
        module.uses.push(target)
        if (visible) module.reexports.set(name, target)
      }
    }
    const rest = module.text.replace(/^\s*(pub(?:\([^)]*\))?\s+)?use\s+[^;]+;/gm, '')
    for (const [path] of rest.matchAll(/\b(?:crate|super|self)(?:::\w+)+/g)) {
      const target = absolute(path.split('::'), module.path)
      if (target) module.uses.push(target)
    }
  }
  // The module that defines what a path names.
  const home = (target, depth = 0) => {
    for (let length = target.length; length >= 0; length -= 1) {
      const name = target.slice(0, length).join('::')
      if (!modules.has(name)) continue
      const again = target[length] && modules.get(name).reexports.get(target[length])
      if (again && depth < 8) return home([...again, ...target.slice(length + 1)], depth + 1)
      return target.slice(0, length)
    }
    return []
  }
  // Edges between siblings: 'parent' -> from -> to -> an example
  const edges = new Map()
  for (const module of modules.values()) {
    for (const use of module.uses) {
      const to = home(use)
      const from = module.path
      let same = 0
      while (same < from.length && same < to.length && from[same] === to[same]) same += 1
      if (same === from.length || same === to.length) continue // a parent and its child
      const parent = from.slice(0, same).join('::')
      const level = edges.get(parent) ?? edges.set(parent, new Map()).get(parent)
      const targets = level.get(from[same]) ?? level.set(from[same], new Map()).get(from[same])
      if (!targets.has(to[same])) targets.set(to[same], `${module.file} uses ${use.join('::')}`)
    }
  }
  for (const [parent, level] of edges) {
    const reported = new Set()
    for (const start of level.keys()) {
      const before = new Map([[start, null]])
      const queue = [start]
      let end = null
      while (queue.length && end === null) {
        const at = queue.shift()
        for (const next of level.get(at)?.keys() ?? []) {
          if (next === start) end = at
          if (!before.has(next)) {
            before.set(next, at)
            queue.push(next)
          }
        }
      }
      if (end === null) continue
      const circle = []
      for (let at = end; at !== null; at = before.get(at)) circle.unshift(at)
      const key = [...circle].sort().join()
      if (reported.has(key)) continue
      reported.add(key)
      const steps = circle.map((from, index) => `  ${level.get(from).get(circle[(index + 1) % circle.length])}`)
      fault(`${crate}${parent && `::${parent}`}: circle ${[...circle, circle[0]].join(' → ')}\n${steps.join('\n')}`)
    }
  }
  for (const [of, from, to, reason] of FORBIDDEN) {
    const example = of === crate && edges.get('')?.get(from)?.get(to)
    if (example) fault(`${crate}: ${from} must not use ${to} (${reason})\n  ${example}`)
  }
  const types = new Map()
  for (const module of modules.values()) {
    for (const [, name] of module.text.matchAll(/^\s*(?:pub(?:\([^)]*\))?\s+)?(?:struct|enum|trait|type|union)\s+(\w+)/gm)) {
      if (/^\s/.test(name)) continue
      types.set(name, [...(types.get(name) ?? []), module.file])
    }
  }
  // Associated types of an implementation are declared by `type` within it.
  for (const name of ['Err', 'Error', 'Item', 'Target', 'Output', 'Rejection', 'Response', 'Future', 'IntoIter']) types.delete(name)
  for (const [name, where] of types) {
    if (where.length > 1 && !SHARED_NAMES.has(name)) fault(`${crate}: ${where.length} types are named ${name}: ${where.join(', ')}`)
  }
}
if (faults > 0) {
  console.error(`lint-modules: ${faults} faults`)
  process.exit(1)
}
