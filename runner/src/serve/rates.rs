//! How often one caller may ask.

use super::problem::Problem;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::net::IpAddr;
use std::num::NonZeroU32;

/// How often a token may be guessed in a minute.
const GUESSES: NonZeroU32 = NonZeroU32::new(30).unwrap();

/// The rates of all callers.
pub(super) struct Rates {
    requests: DefaultKeyedRateLimiter<String>,
    guesses: DefaultKeyedRateLimiter<Option<IpAddr>>,
}

impl Rates {
    pub(super) fn new(requests_per_minute: NonZeroU32) -> Rates {
        Rates {
            requests: RateLimiter::keyed(Quota::per_minute(requests_per_minute)),
            guesses: RateLimiter::keyed(Quota::per_minute(GUESSES)),
        }
    }

    /// Counts a request of this caller.
    pub(super) fn request(&self, caller: &str) -> Result<(), Problem> {
        self.requests
            .check_key(&caller.to_owned())
            .map_err(|not_until| Problem::too_often(not_until.wait_time_from(DefaultClock::default().now())))
    }

    /// Counts a token that was none.
    pub(super) fn guess(&self, address: Option<IpAddr>) -> Result<(), Problem> {
        self.guesses
            .check_key(&address)
            .map_err(|not_until| Problem::too_often(not_until.wait_time_from(DefaultClock::default().now())))
    }

    /// Forgets who has not asked for long.
    pub(super) fn forget(&self) {
        self.requests.retain_recent();
        self.guesses.retain_recent();
    }
}
