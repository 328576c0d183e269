//! Whether a program contains the words of problems.

/// Whether the program has the words of problems. Without them, a problem has its field and an empty message, and the code that would
/// write the rest is left out.
pub const HAS_WORDS: bool = cfg!(feature = "worded");

/// Formats a part of a [`Message`](crate::message::Message) like `format!`. In a program without [words](HAS_WORDS) it is empty, and
/// nothing is evaluated.
macro_rules! words {
    ($($argument:tt)*) => {
        if $crate::words::HAS_WORDS { format!($($argument)*) } else { String::new() }
    };
}
pub(crate) use words;
