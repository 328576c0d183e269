//! The program of the Plan page: the question, and its answers.

fn main() {
    trainplan_web::planner();
}
