//! A page's side of its worker, which reads logs, predicts and launches: the program that pages do not wait for.

use crate::message::Message;
use crate::message::results::ForWorker;
use leptos::prelude::document;
use leptos::wasm_bindgen::closure::Closure;
use leptos::wasm_bindgen::{JsCast, JsValue};
use leptos::web_sys::{File, MessageEvent, Worker, WorkerOptions, WorkerType};

/// A worker; dropping it ends it.
pub(crate) struct Reader {
    worker: Worker,
    _hear: Closure<dyn FnMut(MessageEvent)>,
    _fail: Closure<dyn FnMut()>,
}

impl Reader {
    /// Starts a worker. It hears what the worker says, or nothing where the worker breaks down.
    ///
    /// # Errors
    /// The browser has no workers, or the page lacks the address of the script.
    pub(crate) fn start<M: Message>(hear: impl Fn(Option<M>) + Clone + 'static) -> Result<Reader, JsValue> {
        let meta = document().query_selector("meta[name=worker-src]")?.ok_or(JsValue::NULL)?;
        let options = WorkerOptions::new();
        options.set_type(WorkerType::Module);
        let worker = Worker::new_with_options(&meta.get_attribute("content").unwrap_or_default(), &options)?;
        let fail = {
            let hear = hear.clone();
            Closure::<dyn FnMut()>::new(move || hear(None))
        };
        let hear = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
            if let Some(message) = M::from_js(event.data()) {
                hear(Some(message));
            }
        });
        worker.set_onmessage(Some(hear.as_ref().unchecked_ref()));
        worker.set_onerror(Some(fail.as_ref().unchecked_ref()));
        Ok(Reader { worker, _hear: hear, _fail: fail })
    }

    /// Says something.
    ///
    /// # Errors
    /// The browser can't pass it on.
    pub(crate) fn say(&self, message: &impl Message) -> Result<(), JsValue> {
        self.worker.post_message(&message.to_js()?)
    }

    /// Hands a file over; the next one only after this one is read.
    ///
    /// # Errors
    /// The browser can't pass it on.
    pub(crate) fn hand_over(&self, number: u32, path: &str, file: &File) -> Result<(), JsValue> {
        self.say(&ForWorker::Take { number, path: path.to_string() })?;
        self.worker.post_message(file)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.worker.set_onmessage(None);
        self.worker.set_onerror(None);
        self.worker.terminate();
    }
}
