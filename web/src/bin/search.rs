//! The program of the worker that searches for plans.

fn main() {
    trainplan_web::search_worker();
}
