//! Posts a message to a webhook whenever a followed run ends, and when the round is over.

use super::ended_run::EndedRun;
use super::watch::time;
use crate::conduct::RunOutcome;
use crate::journal::{Round, Run, now_ms};
use crate::upload::cause;
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use reqwest::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode, Url};
use serde::Serialize;
use std::ffi::OsStr;
use std::net::IpAddr;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The time to wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// The time to wait for an answer.
const ANSWER: Duration = Duration::from_secs(10);

/// The pauses before the second and the third attempt to deliver a message.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];

/// How long messages may be delivered after the end of the round.
const LONGEST: Duration = Duration::from_secs(30);

/// The address of a webhook as it was typed; none if it is empty, as in an environment that turns the webhook off.
#[derive(Debug, Clone)]
pub(super) struct TypedAddress(pub(super) Option<Url>);

/// Reads an address. Its errors do not repeat it, because it may contain a secret.
#[derive(Debug, Clone)]
pub(super) struct AddressParser;

impl TypedValueParser for AddressParser {
    type Value = TypedAddress;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<TypedAddress, clap::Error> {
        let text = value.to_string_lossy();
        if text.trim().is_empty() {
            return Ok(TypedAddress(None));
        }
        address(&text).map(|url| TypedAddress(Some(url))).map_err(|why| {
            let text = format!("The address of --webhook is invalid: {why}\n");
            clap::Error::raw(ErrorKind::ValueValidation, text).with_cmd(command)
        })
    }
}

fn address(text: &str) -> Result<Url, String> {
    let wanted = "use an address such as https://hooks.example.com/trainplan";
    let url = Url::parse(text).map_err(|error| format!("{error}; {wanted}"))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        _ => Err(format!("it must begin with http:// or https://; {wanted}")),
    }
}

/// A webhook that gets the ends of a round and its runs. A task delivers the messages one after the other.
pub(super) struct Webhook {
    campaign: String,
    cluster: String,
    /// Without the rest of the address, which may contain a secret.
    host: String,
    /// None after the last message.
    queue: Option<mpsc::UnboundedSender<Message>>,
    /// What could not be delivered.
    notes: mpsc::UnboundedReceiver<String>,
    delivery: JoinHandle<()>,
}

/// A message in the queue.
struct Message {
    /// The run or the campaign that it is about.
    about: String,
    body: String,
}

/// A message as the webhook receives it.
#[derive(Serialize)]
struct Body<'a, T> {
    event: &'static str,
    /// RFC 3339, in UTC.
    at: String,
    campaign: &'a str,
    cluster: &'a str,
    #[serde(flatten)]
    what: T,
    /// A sentence that makes sense alone, for chats.
    text: String,
}

/// The end of a round. A run that was tried again counts by its last attempt.
#[derive(Serialize)]
struct RoundEnd {
    runs: usize,
    scored: usize,
    failed: usize,
    cancelled: usize,
}

impl Webhook {
    /// Returns a webhook of a round. It needs a Tokio runtime.
    ///
    /// # Errors
    /// The sentence that says why the address can't be used.
    pub(super) fn new(url: &Url, round: &Round) -> Result<Webhook, String> {
        let host = url.host_str().unwrap_or_default().to_owned();
        let client = client(url)
            .map_err(|why| format!("The webhook at {host} can't be used: {why}. Install ca-certificates."))?;
        let (queue, waiting) = mpsc::unbounded_channel();
        let (tell, notes) = mpsc::unbounded_channel();
        let delivery = tokio::spawn(deliver_all(client, url.clone(), host.clone(), waiting, tell));
        let (campaign, cluster) = (round.title(), round.cluster.clone());
        Ok(Webhook { campaign, cluster, host, queue: Some(queue), notes, delivery })
    }

    /// Queues a message about a run that ended.
    pub(super) fn run_ended(&self, run: &EndedRun) {
        let mut text = format!("{}/{} on {}: {}", self.campaign, run.run, self.cluster, run.outcome);
        if let Some(judged) = run.judged {
            text += &format!(", {}", judged.in_words());
        }
        if let Some(mfu) = run.mfu {
            text += &format!(", MFU {:.1} %", mfu * 100.0);
        }
        if let Some(why) = &run.why {
            text += &format!("; {why}");
        }
        self.queue("run", &run.run, run, text);
    }

    /// Queues a message about a round that is over.
    pub(super) fn round_ended(&self, runs: &[Run]) {
        let is_last = |run: &&Run| !runs.iter().any(|other| run.plan.is_retried_by(&other.plan));
        let outcomes: Vec<RunOutcome> = runs.iter().filter(is_last).map(RunOutcome::of).collect();
        let count = |wanted: RunOutcome| outcomes.iter().filter(|outcome| **outcome == wanted).count();
        let (scored, cancelled) = (count(RunOutcome::Scored), count(RunOutcome::Cancelled));
        let failed = outcomes.len() - scored - cancelled;
        let end = RoundEnd { runs: outcomes.len(), scored, failed, cancelled };
        let text =
            format!("{} on {} is over: {scored} of {} runs scored", self.campaign, self.cluster, end.runs);
        self.queue("round", &self.campaign, end, text);
    }

    fn queue(&self, event: &'static str, about: &str, what: impl Serialize, text: String) {
        let (campaign, cluster) = (self.campaign.as_str(), self.cluster.as_str());
        let body = Body { event, at: time(now_ms()), campaign, cluster, what, text };
        if let (Some(queue), Ok(body)) = (&self.queue, serde_json::to_string(&body)) {
            let _ = queue.send(Message { about: about.to_owned(), body });
        }
    }

    /// Returns what could not be delivered since the last call, as sentences.
    pub(super) fn news(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.notes.try_recv().ok()).collect()
    }

    /// Waits until all messages are delivered, half a minute at most. Returns what could not be delivered.
    pub(super) async fn finish(&mut self) -> Vec<String> {
        drop(self.queue.take());
        let is_late = tokio::time::timeout(LONGEST, &mut self.delivery).await.is_err();
        if is_late {
            self.delivery.abort();
        }
        let mut news = self.news();
        news.extend(is_late.then(|| {
            format!(
                "The webhook at {} didn't accept every message within {} s.",
                self.host,
                LONGEST.as_secs()
            )
        }));
        news
    }
}

fn client(url: &Url) -> Result<Client, String> {
    crate::tls::ready();
    let mut client = Client::builder()
        .user_agent(concat!("trainplan/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .timeout(ANSWER)
        // The user did not choose the addresses of redirects.
        .redirect(Policy::none());
    if url.scheme() == "http" {
        // Without TLS, the system's certificates are not needed.
        client = client.tls_certs_only([]);
    }
    if is_loopback(url) {
        client = client.no_proxy();
    }
    client.build().map_err(|error| cause(&error))
}

/// Returns whether an address is this machine's own, which no proxy reaches.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Delivers messages in their order until the queue is closed.
async fn deliver_all(
    client: Client,
    url: Url,
    host: String,
    mut queue: mpsc::UnboundedReceiver<Message>,
    notes: mpsc::UnboundedSender<String>,
) {
    while let Some(Message { about, body }) = queue.recv().await {
        if let Err(why) = deliver(&client, &url, &body).await {
            let _ =
                notes.send(format!("The webhook at {host} didn't accept the message about {about}: {why}."));
        }
    }
}

/// Delivers a message, in three attempts where a later one may succeed. An error is the end of a sentence.
async fn deliver(client: &Client, url: &Url, body: &str) -> Result<(), String> {
    let mut pauses = PAUSES.iter();
    loop {
        let request = client.post(url.clone()).header(CONTENT_TYPE, "application/json");
        let (why, may_pass) = match request.body(body.to_owned()).send().await {
            Ok(answer) if answer.status().is_success() => return Ok(()),
            Ok(answer) if answer.status().is_redirection() => {
                (format!("it answered {}, and redirects are not followed", answer.status()), false)
            }
            Ok(answer) => {
                let status = answer.status();
                let may_pass = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
                (format!("it answered {status}"), may_pass)
            }
            Err(error) => (cause(&error), true),
        };
        match pauses.next().filter(|_| may_pass) {
            Some(pause) => tokio::time::sleep(*pause).await,
            None => return Err(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::tests::{plan, round};
    use crate::journal::{Event, Phase, Plan, RunStatus};
    use serde_json::Value;
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;
    use trainplan_shared::log::Status;

    /// Starts a receiver that answers with these statuses in turn and then leaves. Returns its address, and a thread that
    /// returns the bodies.
    fn receiver(answers: &'static [u16]) -> (Url, thread::JoinHandle<Vec<Value>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook?key=s3cret", listener.local_addr().unwrap());
        let heard = thread::spawn(move || {
            let take = |status: &u16| -> Value {
                let mut wire = BufReader::new(listener.accept().unwrap().0);
                let mut length = 0;
                loop {
                    let mut line = String::new();
                    wire.read_line(&mut line).unwrap();
                    let line = line.trim_end().to_ascii_lowercase();
                    if let Some(text) = line.strip_prefix("content-length: ") {
                        length = text.parse().unwrap();
                    }
                    if line.is_empty() {
                        break;
                    }
                }
                let mut body = vec![0; length];
                wire.read_exact(&mut body).unwrap();
                let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                wire.get_mut().write_all(answer.as_bytes()).unwrap();
                serde_json::from_slice(&body).unwrap()
            };
            answers.iter().map(take).collect()
        });
        (address(&url).unwrap(), heard)
    }

    fn ended(name: &str, retry: u32, status: Status) -> Run {
        let parsed = Event::Parsed {
            status,
            reason: (status != Status::Scored).then(|| "the job lost a node".into()),
            step_time_s: (status == Status::Scored).then_some(9.4),
            judged_s: (status == Status::Scored).then_some(11.75),
            mfu: (status == Status::Scored).then_some(0.405),
            speed_percent: None,
            error: None,
            within: None,
        };
        let status = RunStatus { phase: Phase::Stored, parsed: Some(parsed), ..RunStatus::default() };
        let plan = Plan { retries: 2, retry, ..plan(name) };
        Run { id: format!("{name}-{retry}"), round: "r".into(), plan, status }
    }

    #[tokio::test]
    async fn every_end_of_a_run_and_the_end_of_the_round_are_posted() {
        // A server's error passes.
        let (url, heard) = receiver(&[503, 200, 204, 200]);
        let runs = [
            ended("a", 0, Status::Incomplete),
            ended("a", 1, Status::Scored),
            ended("b", 0, Status::Incomplete),
            ended("c", 0, Status::Cancelled),
        ];
        let mut webhook = Webhook::new(&url, &round("r")).unwrap();
        for run in &runs[..2] {
            webhook.run_ended(&EndedRun::of(run, &Event::Stored { result: run.id.clone() }));
        }
        webhook.round_ended(&runs);
        assert_eq!(webhook.finish().await, [""; 0]);
        let heard = heard.join().unwrap();
        assert_eq!(heard[0], heard[1]);
        let [failed, scored, over] = &heard[1..] else { panic!("{heard:?}") };
        assert_eq!((&failed["event"], &failed["outcome"]), (&"run".into(), &"failed".into()));
        assert_eq!((&failed["why"], &failed["step_time_s"]), (&"the job lost a node".into(), &Value::Null));
        assert_eq!(failed["text"], "nightly@1/a on alpha: failed; the job lost a node");
        assert_eq!((&scored["run"], &scored["result"]), (&"a~1".into(), &"a-1".into()));
        assert_eq!((&scored["attempt"], &scored["attempts"]), (&2.into(), &3.into()));
        assert!(scored["step_time_s"] == 9.4 && scored["judged_s"] == 11.75, "{scored}");
        assert_eq!(
            scored["text"],
            "nightly@1/a~1 on alpha: scored, 11.75 s per step (steady mean; scored: 9.400 s), MFU 40.5 %"
        );
        assert_eq!(over["event"], "round");
        let counts = ["runs", "scored", "failed", "cancelled"].map(|count| over[count].as_u64());
        assert_eq!(counts, [Some(3), Some(1), Some(1), Some(1)]);
        assert_eq!(over["text"], "nightly@1 on alpha is over: 1 of 3 runs scored");
        assert_eq!((&over["campaign"], &over["cluster"]), (&"nightly@1".into(), &"alpha".into()));
    }

    #[tokio::test]
    async fn a_webhook_that_refuses_is_reported_without_its_secret() {
        let (url, heard) = receiver(&[403, 302]);
        let mut webhook = Webhook::new(&url, &round("r")).unwrap();
        webhook.round_ended(&[]);
        webhook.round_ended(&[]);
        let notes = webhook.finish().await;
        heard.join().unwrap();
        let [refused, redirected] = &notes[..] else { panic!("{notes:?}") };
        let about = "The webhook at 127.0.0.1 didn't accept the message about nightly@1: it answered ";
        assert!(refused.starts_with(&format!("{about}403")), "{refused}");
        assert!(redirected.starts_with(&format!("{about}302")), "{redirected}");
        assert!(redirected.ends_with("redirects are not followed."), "{redirected}");
    }

    #[test]
    fn addresses_have_a_scheme_and_a_host() {
        for text in ["https://hooks.example.com/x?key=1", "http://127.0.0.1:8080", "http://[::1]/x"] {
            assert!(address(text).is_ok(), "{text}");
        }
        for text in
            ["hooks.example.com", "ftp://example.com/", "file:///etc/passwd", "mailto:me@example.com", ""]
        {
            assert!(address(text).unwrap_err().contains("https://hooks.example.com"), "{text}");
        }
    }
}
