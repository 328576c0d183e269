//! The Benchmarks page: every measured run and every published recipe, to filter, sort, compare and open in the planner.

mod chart;
mod facets;
mod scaling;
mod table;

use crate::address::{Address, name_page};
use crate::components::copy::as_file;
use crate::components::field::{AddressProblems, ProblemText, ValueTitle};
use crate::pages::plan::question::value_title;
use chart::Scatter;
use facets::Facets;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos::wasm_bindgen::{JsCast, JsValue};
use leptos::web_sys::Response;
use scaling::Scaling;
use std::sync::Arc;
use table::{BenchmarkTable, Sort};
use trainplan_shared::benchmarks::{Benchmark, BenchmarkFacet, BenchmarkFilter, parse};
use trainplan_shared::field::Field;
use trainplan_shared::problem::Problem;
use trainplan_shared::tables::BenchmarkColumn;
use trainplan_shared::units::group_digits;
use wasm_bindgen_futures::JsFuture;

/// The address of the page.
pub(crate) const PATH: &str = "/benchmarks";

/// The address's keys of the page: those of two facets, and the chart's axes and colours.
const KEYS: &[&str] = &[BenchmarkFacet::Source.id(), BenchmarkFacet::Kind.id(), CHART_Y, CHART_X, COLOUR];
const CHART_Y: &str = "y";
const CHART_X: &str = "x";
const COLOUR: &str = "colour";

/// The state that the parts of the page share.
#[derive(Clone, Copy)]
struct Benchmarks {
    address: Address,
    /// Every row of the file; empty until it is loaded.
    rows: RwSignal<Arc<Vec<Benchmark>>>,
    filter: Memo<BenchmarkFilter>,
    sort: Memo<Option<Sort>>,
    /// The places in `rows` of those that the filter keeps, in the order of the table.
    shown: Memo<Vec<usize>>,
    /// The place of the row that was chosen in the chart.
    picked: RwSignal<Option<usize>>,
}

impl Benchmarks {
    fn of_page() -> Benchmarks {
        #[expect(clippy::expect_used, reason = "the page provides it before its parts are made")]
        use_context().expect("the Benchmarks page provides its state")
    }

    /// Returns how many of the shown rows were measured.
    fn measured(self) -> usize {
        let is_measured = |row: &Benchmark| row.step_time_s.is_some();
        self.rows.with(|rows| {
            self.shown.with(|shown| shown.iter().filter(|place| is_measured(&rows[**place])).count())
        })
    }

    /// Calls `read` with a row.
    fn with_row<T>(self, place: usize, read: impl FnOnce(&Benchmark) -> T) -> Option<T> {
        self.rows.with(|rows| rows.get(place).map(read))
    }
}

/// The Benchmarks page.
#[component]
pub(crate) fn BenchmarksPage() -> impl IntoView {
    let address = Address::provide_single(PATH, KEYS);
    provide_context(ValueTitle(value_title));
    name_page(|| "Benchmarks".into());
    let rows = RwSignal::new(Arc::new(Vec::<Benchmark>::new()));
    let failure = RwSignal::new(None::<String>);
    spawn_local(async move {
        match load().await {
            Ok(loaded) => rows.set(Arc::new(loaded)),
            Err(reason) => failure.set(Some(reason)),
        }
    });

    let text = move |facet: BenchmarkFacet| {
        facet.field().map_or_else(|| address.own(facet.id()), |field| address.text(field))
    };
    let read = Memo::new(move |_| {
        rows.with(|rows| match rows.is_empty() {
            true => (BenchmarkFilter::default(), Vec::new()),
            false => BenchmarkFilter::read(rows, text),
        })
    });
    let filter = Memo::new(move |_| read.with(|(filter, _)| filter.clone()));
    let parsed_sort = Memo::new(move |_| address.spec().parse::<Sort>(Field::Sort));
    let sort = Memo::new(move |_| parsed_sort.get().ok().flatten());
    let problems = Memo::new(move |_| {
        let unknown = read.with(|(_, unknown)| unknown.clone());
        let facets = unknown.into_iter().filter_map(|(facet, text, known)| {
            Some(Problem::unknown(facet.field()?, &text, known.iter().map(String::as_str)))
        });
        facets.chain(parsed_sort.get().err()).collect::<Vec<Problem>>()
    });
    let shown = Memo::new(move |_| {
        rows.with(|rows| {
            let mut shown: Vec<usize> =
                filter.with(|filter| (0..rows.len()).filter(|place| filter.keeps(&rows[*place])).collect());
            let sort = sort.get().unwrap_or_default();
            shown.sort_by(|a, b| sort.order(&rows[*a], &rows[*b]));
            shown
        })
    });
    let state = Benchmarks { address, rows, filter, sort, shown, picked: RwSignal::new(None) };
    provide_context(state);
    let is_loaded = move || rows.with(|rows| !rows.is_empty());
    view! {
        <div class="benchmarks">
            <h1>"Benchmarks"</h1>
            <p>
                "Measured pre-training runs from public tables, papers and logs, and NVIDIA’s published recipes. "
                "Each opens in Plan if Plan can describe its layout."
            </p>
            <AddressProblems address />
            {move || problems.get().into_iter().map(|problem| view! {
                <p class="notice wrong"><ProblemText problem address /></p>
            }).collect_view()}
            <Show
                when=is_loaded
                fallback=move || match failure.get() {
                    Some(reason) => view! { <p class="notice wrong" role="alert">{reason}</p> }.into_any(),
                    None => view! { <p class="loading" role="status">"Loading the measured runs …"</p> }.into_any(),
                }
            >
                <Facets />
                <CountLine />
                <Show
                    when=move || shown.with(|shown| !shown.is_empty())
                    fallback=|| view! {
                        <p class="notice">"No runs match these filters. " <a href=PATH>"Show all runs"</a></p>
                    }
                >
                    <Scatter />
                    <BenchmarkTable />
                    <Scaling />
                </Show>
            </Show>
        </div>
    }
}

/// The number of rows, and what can be done with them.
#[component]
fn CountLine() -> impl IntoView {
    let state = Benchmarks::of_page();
    let all = move || state.rows.with(|rows| rows.len());
    let shown = move || state.shown.with(Vec::len);
    let measured = Memo::new(move |_| state.measured());
    let save = move |_| {
        let rows: Vec<Benchmark> = state
            .shown
            .with(|shown| state.rows.with(|rows| shown.iter().map(|place| rows[*place].clone()).collect()));
        // Writing to memory gives no error. If the browser refuses a download, it says so itself.
        if let Ok(text) = BenchmarkColumn::csv(&rows).to_csv() {
            let _ = as_file(&text, "trainplan-benchmarks.csv");
        }
    };
    view! {
        <div class="count-line">
            <p aria-live="polite">
                <strong>{move || group_digits(shown() as f64)}</strong>
                {move || format!(
                    " of {} shown: {} measured runs and {} recipes that nobody measured",
                    group_digits(all() as f64),
                    group_digits(measured.get() as f64),
                    group_digits((shown() - measured.get()) as f64),
                )}
            </p>
            <button type="button" class="action" on:click=save>"Download CSV"</button>
        </div>
    }
}

/// Returns the rows of the data file, whose address the page names.
async fn load() -> Result<Vec<Benchmark>, String> {
    let text = fetch_data()
        .await
        .map_err(|_| "The measured runs couldn’t be loaded. Reload the page.".to_string())?;
    parse(&text)
}

async fn fetch_data() -> Result<String, JsValue> {
    let meta = document().query_selector("meta[name=benchmarks-src]")?.ok_or(JsValue::NULL)?;
    let address = meta.get_attribute("content").unwrap_or_default();
    let response: Response = JsFuture::from(window().fetch_with_str(&address)).await?.dyn_into()?;
    if !response.ok() {
        return Err(JsValue::NULL);
    }
    JsFuture::from(response.text()?).await?.as_string().ok_or(JsValue::NULL)
}
