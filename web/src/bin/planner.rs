//! The program of the Plan and Recipes pages.

fn main() {
    trainplan_web::planner();
}
