//! Alerts, told to addresses that the server's keeper named.
//!
//! An address may be wrong, or its name may come to point elsewhere: what is not on the public internet is not asked,
//! unless that was allowed, so that nobody reaches this network's own services through the server. Who knows the secret
//! can tell that an alert came from here: they are signed as standardwebhooks.com has it.

use super::{Options, Server};
use crate::store::Delivery;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use ring::hmac;
use serde_json::Value;
use std::error::Error as _;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// Who does not answer within that is tried again later.
const ANSWER: Duration = Duration::from_secs(10);

/// How often to look for what is due.
const EVERY: Duration = Duration::from_secs(2);

/// Whom to tell, and how.
pub(super) struct Webhooks {
    /// None where there is nobody to tell: it needs the system's certificates.
    client: Option<Client>,
    urls: Vec<String>,
    secret: Option<hmac::Key>,
    public_url: Option<Url>,
}

impl Webhooks {
    /// Ready to tell the addresses that the options name.
    ///
    /// # Errors
    /// One of them can't be told, or the secret is none, with the reason.
    pub(super) fn new(options: &Options) -> Result<Webhooks, String> {
        let (urls, allow_private) = (&options.webhooks, options.webhook_allow_private);
        for url in urls {
            check(url, allow_private).map_err(|why| format!("--webhook {url}: {why}"))?;
        }
        let secret = options.webhook_secret.as_deref().map(key).transpose()?;
        let client = (!urls.is_empty()).then(|| client(allow_private)).transpose()?;
        Ok(Webhooks { client, urls: urls.clone(), secret, public_url: options.public_url.clone() })
    }

    /// All addresses.
    pub(super) fn urls(&self) -> &[String] {
        &self.urls
    }
}

fn client(allow_private: bool) -> Result<Client, String> {
    crate::tls::ready();
    let client = Client::builder()
        .user_agent(concat!("trainplan/", env!("CARGO_PKG_VERSION")))
        .timeout(ANSWER)
        // Where they lead to was not named by anyone here.
        .redirect(Policy::none())
        .no_proxy();
    let client = if allow_private { client } else { client.dns_resolver(PublicOnly) };
    client.build().map_err(|error| {
        let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        format!("--webhook: no address can be asked ({why}): are the system's CA certificates there (ca-certificates)?")
    })
}

/// Tells what is due, for ever.
pub(super) async fn tell(server: Server) {
    let Some(client) = &server.webhooks.client else { return };
    loop {
        match server.store.due_deliveries().await {
            Ok(due) => {
                for delivery in due {
                    tell_one(&server, client, &delivery).await;
                }
            }
            Err(error) => tracing::warn!("alerts can't be told: {error}"),
        }
        tokio::time::sleep(EVERY).await;
    }
}

async fn tell_one(server: &Server, client: &Client, delivery: &Delivery) {
    let webhooks = &server.webhooks;
    let body = message(&delivery.body, webhooks.public_url.as_ref());
    let now = Timestamp::now().as_second().to_string();
    let mut asked = client.post(&delivery.url).header("content-type", "application/json");
    asked = asked.header("webhook-id", &delivery.alert).header("webhook-timestamp", &now);
    if let Some(secret) = &webhooks.secret {
        asked = asked.header("webhook-signature", signature(secret, &delivery.alert, &now, &body));
    }
    let asked = asked.body(body);
    // An address may hold a secret: only its host is told.
    let host =
        Url::parse(&delivery.url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    match asked.send().await.and_then(reqwest::Response::error_for_status) {
        Ok(_) => {
            server.meter.told("taken");
            if let Err(error) = server.store.delivered(delivery).await {
                tracing::warn!("an alert was told to {host} and will be told again: {error}");
            }
        }
        Err(error) => {
            server.meter.told("refused");
            let tries = delivery.tries + 1;
            tracing::warn!("{host} does not take an alert (try {tries}): {}", error.without_url());
        }
    }
}

/// What an address is told: the alert, its text such that it can stand alone in a chat, and where to read more.
fn message(alert: &str, public_url: Option<&Url>) -> String {
    let Ok(mut alert) = serde_json::from_str::<Value>(alert) else { return alert.to_owned() };
    let word = |name: &str| alert[name].as_str().unwrap_or_default();
    let mut text = format!("{}: {}", word("what"), word("text"));
    // Behind the path that a proxy may have given it.
    let link = public_url.map(|url| format!("{}/run?id={}", url.as_str().trim_end_matches('/'), word("run")));
    if let Some(link) = &link {
        text.push_str(&format!("\n{link}"));
    }
    alert["link"] = link.into();
    alert["text"] = text.into();
    alert.to_string()
}

/// Reads a secret: `whsec_` and at least 24 bytes in base64.
fn key(secret: &str) -> Result<hmac::Key, String> {
    let bytes = secret.strip_prefix("whsec_").and_then(|text| BASE64.decode(text).ok());
    let bytes = bytes.filter(|bytes| bytes.len() >= 24).ok_or(
        "TRAINPLAN_WEBHOOK_SECRET is no secret: give whsec_ and at least 24 random bytes in base64, such as \
         whsec_$(openssl rand -base64 32)",
    )?;
    Ok(hmac::Key::new(hmac::HMAC_SHA256, &bytes))
}

fn signature(secret: &hmac::Key, id: &str, at: &str, body: &str) -> String {
    let tag = hmac::sign(secret, format!("{id}.{at}.{body}").as_bytes());
    format!("v1,{}", BASE64.encode(tag))
}

/// Refuses what can't be told.
fn check(url: &str, allow_private: bool) -> Result<(), String> {
    let url = Url::parse(url).map_err(|error| format!("{error}; give https://HOST/PATH"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("give an http or https address".into());
    }
    let host = url.host_str().ok_or("it names no host")?;
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    match address {
        Ok(address) if !allow_private && !is_public(address) => Err(PRIVATE.into()),
        _ => Ok(()),
    }
}

const PRIVATE: &str = "it is not on the public internet: --webhook-allow-private allows that";

/// Finds the public addresses of a name.
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

/// Whether an address is one of the public internet's.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// After IANA's registry of special-purpose addresses.
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
        // What stands for a version 4 address is as public as that.
        (0, 0) if (c, d, e, f) == (0, 0, 0, 0xffff) => v4(g, h),
        (0x64, 0xff9b) if (c, d, e, f) == (0, 0, 0, 0) => v4(g, h),
        (0x2002, _) => v4(b, c),
        // Teredo, documentation, benchmarks and the like.
        (0x2001, ..0x200) | (0x2001, 0xdb8) | (0x3fff, _) => false,
        // Of all others only these are given out.
        _ => a & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_public_internet_is_public() {
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
    fn an_address_of_this_network_is_refused_however_it_is_written() {
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
    fn a_signature_is_the_standards() {
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
    fn a_message_says_what_it_is_about_and_links_there() {
        let alert = r#"{"run": "01a1", "what": "llama3.1-8b on alpha", "kind": "previous", "text": "13.2 s is too slow"}"#;
        let told = |url: Option<&str>| -> Value {
            let url = url.map(|url| Url::parse(url).unwrap());
            serde_json::from_str(&message(alert, url.as_ref())).unwrap()
        };
        let there = told(Some("https://example.org/trainplan/"));
        assert_eq!(there["link"], "https://example.org/trainplan/run?id=01a1");
        let text = "llama3.1-8b on alpha: 13.2 s is too slow\nhttps://example.org/trainplan/run?id=01a1";
        assert_eq!((&there["text"], &there["kind"]), (&text.into(), &"previous".into()));
        let nowhere = told(None);
        assert_eq!(
            (&nowhere["link"], &nowhere["text"]),
            (&Value::Null, &"llama3.1-8b on alpha: 13.2 s is too slow".into())
        );
    }

    #[tokio::test]
    async fn a_name_that_points_into_this_network_is_not_asked() {
        let error = match PublicOnly.resolve("localhost".parse().unwrap()).await {
            Ok(_) => panic!("localhost is public"),
            Err(error) => error,
        };
        assert!(error.to_string().contains("public internet"), "{error}");
    }
}
