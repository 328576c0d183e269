//! The program of the Benchmarks page.

fn main() {
    trainplan_web::benchmarks();
}
