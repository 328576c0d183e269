//! Saves the dropped results to files, and uploads them.

use super::intake::Entries;
use crate::components::trouble::RequestErrorNote;
use crate::desk::Desk;
use crate::message::{Answer, Question, RequestError, Scope, TableFormat, UploadProgress, UploadSummary};
use leptos::prelude::*;

/// The most runs without a recipe that are named.
const NAMED: usize = 3;

/// The buttons that save and upload results.
#[component]
pub(super) fn SaveButtons() -> impl IntoView {
    let (desk, entries) = (Desk::of_app(), Entries::of_app());
    let has_server = move || desk.has_server() == Some(true);
    let may_upload = desk.may(Scope::Upload, has_server);
    // An upload continues while another page is open.
    let sent = entries.sent;
    let is_sending = Memo::new(move |_| sent.with(Option::is_some));
    let (uploaded, trouble) = (RwSignal::new(None::<UploadSummary>), RwSignal::new(None::<RequestError>));
    let upload = move |_| {
        // The button stays enabled, so that it keeps the focus.
        if is_sending.get_untracked() {
            return;
        }
        sent.set(Some(UploadProgress::default()));
        uploaded.set(None);
        trouble.set(None);
        desk.ask(Question::Upload, move |answer| {
            let (told, wrong) = match answer {
                Ok(Answer::UploadSummary(told)) => (Some(told), None),
                Ok(_) => (None, None),
                Err(wrong) => (None, Some(wrong)),
            };
            sent.set(None);
            // The page may have been closed meanwhile.
            uploaded.try_set(told);
            trouble.try_set(wrong);
        });
    };
    // Screen readers announce every quarter.
    let heard = Memo::new(move |_| {
        sent.get().map(|sent| how_far(&UploadProgress { percent: sent.percent / 25 * 25, ..sent }))
    });
    let save = move |format: TableFormat| move |_| entries.save(format);
    view! {
        <div class="buttons">
            <button type="button" class="action" on:click=save(TableFormat::Csv)>"Save as CSV"</button>
            <button type="button" class="action" on:click=save(TableFormat::Json)>"Save as JSON"</button>
            <button type="button" class="action" on:click=move |_| entries.save_results() title="One *.result.json per log; several are saved as a tar archive">"Save result files"</button>
            <Show when=has_server>
                <button type="button" class="action" disabled=move || !may_upload.get() || entries.is_busy() title="Uploads results and raw logs, visible to everyone with access" on:click=upload>
                    {move || if is_sending.get() { "Uploading…" } else { "Upload to this server" }}
                </button>
                <Show when=move || !may_upload.get()><small>"Uploading needs a token with the scope upload."</small></Show>
            </Show>
            {move || entries.save_failed().then(|| view! { <span class="error" role="status">"There is nothing to save."</span> })}
        </div>
        <Show when=move || is_sending.get()>
            <div class="progress">
                <progress max="100" aria-label="Upload" prop:value=move || sent.get().map(|sent| sent.percent)></progress>
                <span aria-hidden="true">{move || sent.get().map(|sent| how_far(&sent))}</span>
            </div>
        </Show>
        <div aria-live="polite">{move || heard.get().map(|heard| view! { <span class="visually-hidden">{heard}</span> })}{move || uploaded.get().map(|uploaded| view! {
            <p>{told(&uploaded)}</p>
            {not_in_history(&uploaded).map(|note| view! { <p class="notice">{note}</p> })}
            {uploaded.refused.iter().map(|refused| view! { <p class="notice wrong">{refused.clone()}</p> }).collect_view()}
        })}</div>
        <RequestErrorNote trouble />
    }
}

/// Returns the progress of an upload, in words.
fn how_far(UploadProgress { file, files, percent, is_broken }: &UploadProgress) -> String {
    let which = if *files > 1 { format!(" file {file} of {files}") } else { String::new() };
    let broken = if *is_broken { "; connection lost, retrying" } else { "" };
    format!("Uploading{which}: {percent} %{broken}")
}

/// Names uploaded runs that belong to no time line, what is missing, and what to do; none without such runs.
fn not_in_history(UploadSummary { without_scenario: paths, lacking, .. }: &UploadSummary) -> Option<String> {
    let (named, more) = paths.split_at(paths.len().min(NAMED));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    let named = named.join(", ");
    (!named.is_empty()).then(|| {
        let lacking = lacking.join(", ");
        format!(
            "Not in History: {named}{more}. Unknown: {lacking}. Set this, or the recipe, and upload again."
        )
    })
}

/// Returns the outcome of an upload, in words.
fn told(UploadSummary { new, known, corrected, refused, .. }: &UploadSummary) -> String {
    let mut counts = vec![format!("Uploaded: {new}")];
    if *known > 0 {
        counts.push(format!("already on the server: {known}"));
    }
    if *corrected > 0 {
        counts.push(format!("corrected: {corrected}"));
    }
    if !refused.is_empty() {
        counts.push(format!("refused: {}", refused.len()));
    } else if new + known + corrected == 0 {
        return "Nothing to upload: no file has a training step.".to_string();
    }
    format!("{}.", counts.join(", "))
}
