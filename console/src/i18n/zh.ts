export const zh = {
};
export type Key = keyof typeof zh;
