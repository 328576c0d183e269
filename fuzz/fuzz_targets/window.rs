//! Any text is a window that is read back as printed, or is refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trainplan_shared::log::Window;

fuzz_target!(|text: &str| {
    if let Ok(window) = text.parse::<Window>() {
        assert_eq!(window.to_string().parse(), Ok(window));
    }
});
