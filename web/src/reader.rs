//! A page's connection to its worker, which reads logs, predicts and writes launch scripts without blocking
//! the page.

use crate::files::FoundFile;
use crate::message::WorkerMessage;
use crate::message::results::ForWorker;
use leptos::prelude::document;
use leptos::wasm_bindgen::closure::Closure;
use leptos::wasm_bindgen::{JsCast, JsValue};
use leptos::web_sys::{MessageEvent, Worker, WorkerOptions, WorkerType};

/// The name of the element with the address of the worker for predictions, launches and results.
pub(crate) const WORKER: &str = "worker-src";
/// The name of the element with the address of the worker that searches for plans.
pub(crate) const SEARCH_WORKER: &str = "search-src";

/// A worker of the page, terminated when dropped.
pub(crate) struct PageWorker {
    worker: Worker,
    // The browser calls these for as long as the worker lives.
    _on_message: Closure<dyn FnMut(MessageEvent)>,
    _on_error: Closure<dyn FnMut()>,
}

impl PageWorker {
    /// Starts the worker whose script the page's element `<meta name="{name}">` names. `receive` is called with each
    /// message from the worker, and with `None` if the worker fails.
    ///
    /// # Errors
    /// The browser does not support workers, or the page does not name the worker's script.
    pub(crate) fn start<M: WorkerMessage>(
        name: &str,
        receive: impl Fn(Option<M>) + Clone + 'static,
    ) -> Result<PageWorker, JsValue> {
        let meta = document().query_selector(&format!("meta[name={name}]"))?.ok_or(JsValue::NULL)?;
        let options = WorkerOptions::new();
        options.set_type(WorkerType::Module);
        let worker = Worker::new_with_options(&meta.get_attribute("content").unwrap_or_default(), &options)?;
        let on_error = {
            let receive = receive.clone();
            Closure::<dyn FnMut()>::new(move || receive(None))
        };
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
            if let Some(message) = M::from_js(event.data()) {
                receive(Some(message));
            }
        });
        worker.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        worker.set_onerror(Some(on_error.as_ref().unchecked_ref()));
        Ok(PageWorker { worker, _on_message: on_message, _on_error: on_error })
    }

    /// Posts a message to the worker.
    ///
    /// # Errors
    /// The message can't be converted to a JavaScript object.
    pub(crate) fn send(&self, message: &impl WorkerMessage) -> Result<(), JsValue> {
        self.worker.post_message(&message.to_js()?)
    }

    /// Posts a file to the worker. Wait until the worker has read it before you post the next one.
    ///
    /// # Errors
    /// The file can't be posted.
    pub(crate) fn send_file(&self, number: u32, found: &FoundFile) -> Result<(), JsValue> {
        let FoundFile { path, file, parts } = found.clone();
        self.send(&ForWorker::Take { number, path, parts })?;
        self.worker.post_message(&file)
    }
}

impl Drop for PageWorker {
    fn drop(&mut self) {
        self.worker.set_onmessage(None);
        self.worker.set_onerror(None);
        self.worker.terminate();
    }
}
