//! Request rates per caller.

use super::problem::Problem;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;

/// The number of invalid tokens that one address may send per minute.
const GUESSES: NonZeroU32 = NonZeroU32::new(30).unwrap();

/// The request rates of all callers.
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

    /// Counts a request; refuses it if the caller exceeded its rate.
    pub(super) fn request(&self, caller: &str) -> Result<(), Problem> {
        count(&self.requests, &caller.to_owned())
    }

    /// Counts an invalid token; refuses the request if its network sent too many.
    pub(super) fn guess(&self, address: Option<IpAddr>) -> Result<(), Problem> {
        count(&self.guesses, &address.map(network))
    }

    /// Drops the counters of callers who have been idle.
    pub(super) fn forget(&self) {
        self.requests.retain_recent();
        self.guesses.retain_recent();
    }
}

/// Returns what an address is counted by: an IPv4 address itself, an IPv6 address's /64, which one host may
/// own whole.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6((ip.to_bits() & (u128::MAX << 64)).into()),
        ip => ip,
    }
}

fn count<K: Clone + Hash + Eq>(limiter: &DefaultKeyedRateLimiter<K>, key: &K) -> Result<(), Problem> {
    limiter
        .check_key(key)
        .map_err(|not_until| Problem::too_often(not_until.wait_time_from(DefaultClock::default().now())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted_as(address: &str) -> String {
        network(address.parse().expect("an address")).to_string()
    }

    #[test]
    fn addresses_of_one_ipv6_network_count_as_one() {
        assert_eq!(counted_as("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(counted_as("2001:db8:1:2::1"), "2001:db8:1:2::");
        assert_eq!(counted_as("2001:db8:1:3::1"), "2001:db8:1:3::");
    }

    #[test]
    fn every_ipv4_address_counts_for_itself() {
        assert_eq!(counted_as("192.0.2.1"), "192.0.2.1");
        assert_eq!(counted_as("::ffff:192.0.2.1"), "192.0.2.1");
    }
}
