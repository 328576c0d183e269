//! What differs between a native program and one in JavaScript: where lines go, and the time.

pub(crate) use this::{NAME, milliseconds, report, say};

#[cfg(not(target_family = "wasm"))]
mod this {
    #![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is what this program is for")]

    use std::sync::LazyLock;
    use std::time::Instant;

    pub(crate) const NAME: &str = "native code";

    pub(crate) fn say(line: &str) {
        println!("{line}");
    }

    pub(crate) fn report(line: &str) {
        eprintln!("{line}");
    }

    pub(crate) fn milliseconds() -> f64 {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        START.elapsed().as_secs_f64() * 1e3
    }
}

#[cfg(target_family = "wasm")]
mod this {
    use web_sys::console;
    use web_sys::js_sys::Date;

    pub(crate) const NAME: &str = "WebAssembly";

    pub(crate) fn say(line: &str) {
        console::log_1(&line.into());
    }

    pub(crate) fn report(line: &str) {
        console::error_1(&line.into());
    }

    pub(crate) fn milliseconds() -> f64 {
        Date::now()
    }
}
