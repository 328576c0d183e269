//! The program of the Plan page.

fn main() {
    trainplan_web::planner();
}
