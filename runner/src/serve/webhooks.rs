//! Delivers alerts to webhooks.
//!
//! An address may be wrong, and its name may later point elsewhere. Addresses outside the public internet are
//! refused unless they are allowed, so that the server can't be used to reach services in its own network.
//! Requests are signed as standardwebhooks.com specifies, so that receivers can verify their origin.

use super::{ServeOptions, Server};
use crate::store::{Delivery, StoreError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::future::join_all;
use jiff::Timestamp;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use ring::hmac;
use serde::Serialize;
use std::error::Error as _;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use trainplan_shared::api::AlertMessage;

/// The time to wait for an answer.
const ANSWER: Duration = Duration::from_secs(10);

/// How often to look for deliveries that are due.
const EVERY: Duration = Duration::from_secs(2);

/// The webhooks of a server.
pub(super) struct Webhooks {
    /// None without webhooks: a client needs the system's certificates.
    client: Option<Client>,
    urls: Vec<String>,
    secret: Option<hmac::Key>,
    public_url: Option<Url>,
}

impl Webhooks {
    /// Returns the webhooks that the options name.
    ///
    /// # Errors
    /// The sentence that says which address or secret is invalid, and why.
    pub(super) fn new(options: &ServeOptions) -> Result<Webhooks, String> {
        let (urls, allow_private) = (&options.webhooks, options.webhook_allow_private);
        for url in urls {
            check(url, allow_private).map_err(|why| format!("The webhook {url} {why}."))?;
        }
        let secret = options.webhook_secret.as_deref().map(key).transpose()?;
        let client = (!urls.is_empty()).then(|| client(allow_private)).transpose()?;
        Ok(Webhooks { client, urls: urls.clone(), secret, public_url: options.public_url.clone() })
    }

    /// Returns all addresses.
    pub(super) fn urls(&self) -> &[String] {
        &self.urls
    }
}

fn client(allow_private: bool) -> Result<Client, String> {
    crate::tls::ready();
    let client = Client::builder()
        .user_agent(concat!("trainplan/", env!("CARGO_PKG_VERSION")))
        .timeout(ANSWER)
        // The addresses of redirects were not allowed by anyone.
        .redirect(Policy::none())
        .no_proxy();
    let client = if allow_private { client } else { client.dns_resolver(PublicOnly) };
    client.build().map_err(|error| {
        let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        format!("Webhooks can't use TLS: {why}. Install the system's CA certificates (ca-certificates).")
    })
}

/// Delivers alerts when they are due, forever. Each address has its own loop, so that a slow one delays no
/// other.
pub(super) async fn run(server: Server) {
    let Some(client) = &server.webhooks.client else { return };
    join_all(server.webhooks.urls.iter().map(|url| deliver_to(&server, client, url))).await;
}

/// Drops the alerts for webhooks that no server has any more.
pub(super) async fn forget_removed(server: &Server) -> Result<(), StoreError> {
    for url in server.store.forget_deliveries(server.webhooks.urls()).await? {
        tracing::warn!(
            "an alert for {} was dropped, because no server has that webhook any more",
            host(&url)
        );
    }
    Ok(())
}

/// Returns the host of an address. The rest may contain a secret, so only the host is logged.
fn host(url: &str) -> String {
    Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
}

async fn deliver_to(server: &Server, client: &Client, url: &str) {
    loop {
        match server.store.due_deliveries(url).await {
            Ok(due) => {
                for delivery in due {
                    deliver(server, client, &delivery).await;
                }
            }
            Err(error) => tracing::warn!("alerts could not be delivered: {error}"),
        }
        tokio::time::sleep(EVERY).await;
    }
}

async fn deliver(server: &Server, client: &Client, delivery: &Delivery) {
    let webhooks = &server.webhooks;
    let body = payload(&delivery.body, webhooks.public_url.as_ref());
    let now = Timestamp::now().as_second().to_string();
    let mut asked = client.post(&delivery.url).header("content-type", "application/json");
    asked = asked.header("webhook-id", &delivery.alert).header("webhook-timestamp", &now);
    if let Some(secret) = &webhooks.secret {
        asked = asked.header("webhook-signature", signature(secret, &delivery.alert, &now, &body));
    }
    let asked = asked.body(body);
    let host = host(&delivery.url);
    let why = match asked.send().await {
        Ok(answer) if answer.status().is_success() => {
            server.meter.delivered("taken");
            if let Err(error) = server.store.delivered(delivery).await {
                tracing::warn!("{host} received an alert and will receive it again: {error}");
            }
            return;
        }
        Ok(answer) if answer.status().is_redirection() => {
            format!("it answered {}; redirects are not followed", answer.status())
        }
        Ok(answer) => format!("it answered {}", answer.status()),
        Err(error) => error.without_url().to_string(),
    };
    server.meter.delivered("refused");
    tracing::warn!("{host} did not accept an alert (attempt {}): {why}", delivery.tries + 1);
}

/// An alert as webhooks receive it.
#[derive(Serialize)]
struct Payload {
    #[serde(flatten)]
    message: AlertMessage,
    /// The run's page, if the server knows its own address.
    link: Option<String>,
}

/// Returns the body of a request: the alert with a link, and a text that also makes sense alone, in a chat.
fn payload(alert: &str, public_url: Option<&Url>) -> String {
    let Ok(message) = serde_json::from_str::<AlertMessage>(alert) else { return alert.to_owned() };
    let mut text = format!("{}: {}", message.what, message.text);
    // The public address may have a path.
    let link = public_url.map(|url| format!("{}/run?id={}", url.as_str().trim_end_matches('/'), message.run));
    if let Some(link) = &link {
        text.push_str(&format!("\n{link}"));
    }
    let payload = Payload { message: AlertMessage { text, ..message }, link };
    serde_json::to_string(&payload).unwrap_or_else(|_| alert.to_owned())
}

/// Returns the key in a secret: `whsec_` and at least 24 bytes in base64.
fn key(secret: &str) -> Result<hmac::Key, String> {
    let bytes = secret.strip_prefix("whsec_").and_then(|text| BASE64.decode(text).ok());
    let bytes = bytes.filter(|bytes| bytes.len() >= 24).ok_or(
        "TRAINPLAN_WEBHOOK_SECRET must be whsec_ and at least 24 random bytes in base64, such as \
         whsec_$(openssl rand -base64 32).",
    )?;
    Ok(hmac::Key::new(hmac::HMAC_SHA256, &bytes))
}

fn signature(secret: &hmac::Key, id: &str, at: &str, body: &str) -> String {
    let tag = hmac::sign(secret, format!("{id}.{at}.{body}").as_bytes());
    format!("v1,{}", BASE64.encode(tag))
}

/// Refuses invalid addresses; the reason follows the address in a sentence.
fn check(url: &str, allow_private: bool) -> Result<(), String> {
    let url = Url::parse(url)
        .map_err(|error| format!("is not a valid address ({error}); use https://HOST/PATH"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must begin with http:// or https://".into());
    }
    let host = url.host_str().ok_or("has no host")?;
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    match address {
        Ok(address) if !allow_private && !is_public(address) => Err(PRIVATE.into()),
        _ => Ok(()),
    }
}

const PRIVATE: &str = "is not on the public internet; allow that with --webhook-allow-private";

/// A DNS resolver that returns public addresses only.
struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<_> = found.filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, PRIVATE).into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// Returns whether an address is on the public internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Follows IANA's registry of special-purpose addresses.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_shared = a == 100 && (64..128).contains(&b);
    let is_for_protocols = (a, b, c) == (192, 0, 0);
    let is_for_benchmarks = a == 198 && (b == 18 || b == 19);
    !(a == 0
        || a >= 240
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || is_shared
        || is_for_protocols
        || is_for_benchmarks)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let v4 = |high: u16, low: u16| {
        let ([one, two], [three, four]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(one, two, three, four))
    };
    match (a, b) {
        // Addresses that embed an IPv4 address are as public as that.
        (0, 0) if (c, d, e, f) == (0, 0, 0, 0xffff) => v4(g, h),
        (0x64, 0xff9b) if (c, d, e, f) == (0, 0, 0, 0) => v4(g, h),
        (0x2002, _) => v4(b, c),
        // Teredo, documentation, benchmarks and other special addresses.
        (0x2001, ..0x200) | (0x2001, 0xdb8) | (0x3fff, _) => false,
        // IANA has allocated only 2000::/3 of the rest.
        _ => a & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn special_purpose_addresses_are_not_public() {
        for address in ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "192.0.0.8",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "203.0.113.9",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:db8::1",
            "2001::1",
            "::127.0.0.1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn private_addresses_are_refused_in_every_notation() {
        for url in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://[::1]:80/",
            "http://[::ffff:10.0.0.1]/",
            "https://169.254.169.254/latest/meta-data",
            "ftp://example.com/",
            "file:///etc/passwd",
            "example.com",
        ] {
            assert!(check(url, false).is_err(), "{url}");
        }
        assert_eq!(check("https://hooks.example.com/x", false), Ok(()));
        assert_eq!(check("http://127.0.0.1/", true), Ok(()));
    }

    #[test]
    fn signatures_match_the_example_of_standard_webhooks() {
        // The example of standardwebhooks.com's specification.
        let secret = key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signed =
            signature(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", r#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        for secret in ["", "secret", "whsec_", "whsec_c2hvcnQ=", "whsec_*"] {
            assert!(key(secret).is_err(), "{secret}");
        }
    }

    #[test]
    fn a_payload_has_a_complete_text_and_a_link() {
        let alert = r#"{"run": "01a1", "what": "llama3.1-8b on alpha", "kind": "previous", "text": "13.2 s is too slow",
            "at": "2026-11-21T02:13:00Z", "measured_s": 13.2, "expected_s": 12.4, "limit_s": 13.0}"#;
        let sent = |url: Option<&str>| -> Value {
            let url = url.map(|url| Url::parse(url).unwrap());
            serde_json::from_str(&payload(alert, url.as_ref())).unwrap()
        };
        let linked = sent(Some("https://example.org/trainplan/"));
        assert_eq!(linked["link"], "https://example.org/trainplan/run?id=01a1");
        let text = "llama3.1-8b on alpha: 13.2 s is too slow\nhttps://example.org/trainplan/run?id=01a1";
        assert_eq!((&linked["text"], &linked["kind"]), (&text.into(), &"previous".into()));
        let unlinked = sent(None);
        assert_eq!(
            (&unlinked["link"], &unlinked["text"]),
            (&Value::Null, &"llama3.1-8b on alpha: 13.2 s is too slow".into())
        );
    }

    #[tokio::test]
    async fn names_that_resolve_to_private_addresses_are_refused() {
        let error = match PublicOnly.resolve("localhost".parse().unwrap()).await {
            Ok(_) => panic!("localhost is public"),
            Err(error) => error,
        };
        assert!(error.to_string().contains("public internet"), "{error}");
    }
}
