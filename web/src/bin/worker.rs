//! The program of the worker.

fn main() {
    trainplan_web::worker();
}
