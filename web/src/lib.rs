//! The Trainplan web app. It runs in the browser, and each page keeps its state in the URL.
//!
//! There are several programs, so that a page loads only the code it needs: [`planner`] for the question and its
//! answers, [`details`] for the chosen plan, [`benchmarks`] for measured runs and recipes, [`results`] for runs, [`worker`] for large or slow
//! computations, and [`search_worker`], which searches for plans. A link between pages of different programs loads a new
//! page.
//!
//! The workers are built without the feature `pages`, and so without Leptos: its streams export functions that every program
//! with it contains.

#![allow(unreachable_pub, reason = "a component's generated items are public, whatever its own visibility")]

#[cfg(feature = "pages")]
mod address;
#[cfg(feature = "pages")]
mod app;
#[cfg(feature = "pages")]
mod components;
mod deadline;
#[cfg(feature = "pages")]
mod desk;
#[cfg(feature = "pages")]
mod files;
#[cfg_attr(not(feature = "pages"), allow(dead_code, unused_imports, reason = "only pages use it"))]
mod message;
#[cfg(feature = "pages")]
mod pages;
#[cfg(feature = "pages")]
mod reader;
mod search_worker;
#[cfg(feature = "pages")]
mod storage;
mod worker;

#[cfg(feature = "pages")]
pub use app::{benchmarks, details, planner, results};

/// Starts the worker.
pub fn worker() {
    worker::start();
}

/// Starts the worker that searches for plans.
pub fn search_worker() {
    search_worker::start();
}
